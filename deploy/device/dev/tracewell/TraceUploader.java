package dev.tracewell;

import java.io.BufferedInputStream;
import java.io.Closeable;
import java.io.File;
import java.io.FileInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.HttpRetryException;
import java.net.HttpURLConnection;
import java.net.URI;
import java.net.URL;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.Base64;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Random;
import java.util.UUID;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * Uploads traces to tracewell from devices with unreliable networks, without dependencies: a bounded queue in a
 * folder, resumable uploads in pieces (tus 1.0.0), exponential back-off with jitter, and the waits that the server
 * requests. Runs on Android 8 (API 26) and later, and on any JVM from 8.
 *
 * <pre>
 * TraceUploader uploader = new TraceUploader(URI.create("https://traces.example.com"), INGEST_KEY,
 *         new File(context.getNoBackupFilesDir(), "traces"));
 * Map&lt;String, String&gt; about = new HashMap&lt;&gt;();
 * about.put("build_id", BuildConfig.BUILD_ID);
 * about.put("scenario", "cold_start");
 * uploader.add(traceFile, about);
 * // in a worker that runs when there is a network:
 * while (uploader.sendNext() == TraceUploader.SENT) { }
 * </pre>
 *
 * add compresses the trace into the queue, so its file may be deleted afterwards. When the queue is full, the
 * oldest trace is dropped: recent ones are more useful.
 *
 * Do not call this class on the main thread: add compresses and syncs, sendNext waits for the network, the
 * constructor reads a folder. Calls do not wait for each other. Several uploaders and processes may share a folder;
 * one sends at a time.
 */
public final class TraceUploader {
	/** Returned by {@link #sendNext} after a trace was sent or rejected; otherwise it returns the wait in ms. */
	public static final long SENT = 0;
	/** Returned if nothing is queued. */
	public static final long NOTHING = Long.MAX_VALUE;

	/** Name of the file, in the folder, of the wait that the server requested. */
	static final String SERVER = "server";
	private static final String META = "meta.";
	private static final String KEY = "key";
	private static final String OTHER = "another trace came under this Idempotency-Key";
	private static final long HOUR_MS = 3600_000;
	private static final long MAX_REQUESTED_MS = 24 * HOUR_MS;

	/** Notified of the outcome of each trace, on the thread that called add or sendNext. */
	public static class Listener {
		/** The server stored the trace with this id; {@link #page} returns its address. */
		public void sent(Map<String, String> metadata, String traceId) {}

		/** The server rejected the trace; it was deleted. */
		public void refused(Map<String, String> metadata, String why) {}

		/** The queue was full; the trace was deleted. */
		public void dropped(Map<String, String> metadata) {}

		/** The trace stays queued and is retried in ms: no network, an invalid key, a busy server. */
		public void waits(Map<String, String> metadata, String why, long ms) {}
	}

	private final URI server;
	private final String key;
	private final TraceQueue queue;
	private final Random random = new Random();
	private long maxQueueBytes = 64L << 20;
	private int pieceBytes = 256 << 10;
	private long firstWaitMs = 2_000;
	private long maxWaitMs = 15 * 60_000;
	private int connectMs = 15_000;
	private int readMs = 60_000;
	private final AtomicInteger sent = new AtomicInteger();
	private final AtomicInteger dropped = new AtomicInteger();
	private final AtomicInteger refused = new AtomicInteger();
	private volatile String lastRefusal = "";
	private volatile Listener listener = new Listener();

	public TraceUploader(URI server, String key, File folder) {
		this.server = server;
		this.key = key;
		this.queue = new TraceQueue(folder);
	}

	public TraceUploader listener(Listener to) {
		listener = to;
		return this;
	}

	public TraceUploader maxQueueBytes(long bytes) {
		maxQueueBytes = bytes;
		return this;
	}

	public TraceUploader pieceBytes(int bytes) {
		pieceBytes = bytes;
		return this;
	}

	public TraceUploader waits(long firstMs, long maxMs) {
		firstWaitMs = firstMs;
		maxWaitMs = maxMs;
		return this;
	}

	public TraceUploader timeouts(int connect, int read) {
		connectMs = connect;
		readMs = read;
		return this;
	}

	/** Traces sent. */
	public int sent() {
		return sent.get();
	}

	/** Traces dropped because the queue was full. */
	public int dropped() {
		return dropped.get();
	}

	/** Traces that the server rejected; {@link #lastRefusal} has the reason of the last one. */
	public int refused() {
		return refused.get();
	}

	public String lastRefusal() {
		return lastRefusal;
	}

	/** Compressed bytes in the queue. */
	public long queuedBytes() {
		return queue.bytes();
	}

	/** Address of a trace's page. */
	public URI page(String traceId) {
		return server.resolve("/traces/" + traceId);
	}

	/** Adds a trace with a new key: retries of it are one trace, adding it twice makes two. */
	public boolean add(File trace, Map<String, String> metadata) throws IOException {
		return add(trace, metadata, UUID.randomUUID().toString());
	}

	/**
	 * Compresses a trace into the queue. Metadata has the parameters of POST /api/v1/traces; started_at defaults to
	 * the file's modification time. Traces added with the same idempotency key are one trace. Returns false if the
	 * trace alone exceeds the queue's limit.
	 */
	public boolean add(File trace, Map<String, String> metadata, String idempotencyKey) throws IOException {
		Properties about = new Properties();
		about.setProperty(KEY, printable(idempotencyKey));
		if (queue.has(KEY, about.getProperty(KEY))) return true;
		long written = trace.lastModified();
		about.setProperty(META + "started_at", String.valueOf(written > 0 ? written : System.currentTimeMillis()));
		if (metadata != null)
			for (Map.Entry<String, String> m : metadata.entrySet())
				if (m.getKey() != null && m.getValue() != null) about.setProperty(META + m.getKey(), m.getValue());
		List<Properties> gone = queue.add(trace, about, maxQueueBytes);
		if (gone == null) return false;
		dropped.addAndGet(gone.size());
		for (Properties g : gone) listener.dropped(metadataOf(g));
		return true;
	}

	/** A valid header value: the server accepts 255 bytes of printable ASCII. */
	private static String printable(String key) {
		boolean fits = key.length() > 0 && key.length() <= 255;
		for (int i = 0; i < key.length(); i++) fits &= key.charAt(i) > ' ' && key.charAt(i) <= '~';
		return fits ? key : UUID.nameUUIDFromBytes(key.getBytes(StandardCharsets.UTF_8)).toString();
	}

	private static Map<String, String> metadataOf(Properties about) {
		Map<String, String> metadata = new LinkedHashMap<>();
		for (String name : about.stringPropertyNames())
			if (name.startsWith(META)) metadata.put(name.substring(META.length()), about.getProperty(name));
		return metadata;
	}

	/**
	 * Sends the oldest due trace. Returns SENT if it was sent or rejected, NOTHING if none is queued, otherwise the
	 * ms to wait before the next call (no network, a busy server, another process is sending).
	 */
	public long sendNext() {
		try (Closeable lock = queue.lockSending()) {
			return lock == null ? firstWaitMs : sendDue();
		} catch (IOException noLock) {
			return firstWaitMs;
		}
	}

	private long sendDue() {
		List<String> names = queue.names();
		long held = names.isEmpty() ? 0 : held();
		if (held > 0) return held;
		long soonest = NOTHING;
		for (String name : names) {
			Properties about = queue.read(name);
			long left = left(about);
			if (left == 0) return sendOne(name, about);
			soonest = Math.min(soonest, left);
		}
		return soonest;
	}

	private long sendOne(String name, Properties about) {
		try {
			send(name, queue.file(name), about);
		} catch (Refused e) {
			return refused(name, about, e);
		} catch (IOException | IllegalArgumentException e) { // the latter: a response of another server
			return later(name, about, 0, String.valueOf(e.getMessage()));
		}
		sent.incrementAndGet();
		queue.forget(name);
		listener.sent(metadataOf(about), about.getProperty("trace", ""));
		return SENT;
	}

	private long refused(String name, Properties about, Refused e) {
		if (!e.rejected) {
			long wait = later(name, about, e.waitMs(number(about, "tries", 0)), e.getMessage());
			if (e.isOfServer()) hold(wait);
			return wait;
		}
		refused.incrementAndGet();
		lastRefusal = e.getMessage();
		queue.forget(name);
		listener.refused(metadataOf(about), e.getMessage());
		return SENT;
	}

	/** Waits as the server requested, otherwise twice as long each time; with jitter, so that devices spread out. */
	private long later(String name, Properties about, long requested, String why) {
		int tries = (int) number(about, "tries", 0);
		long wait = Math.min(maxWaitMs, firstWaitMs << Math.min(tries, 20));
		wait = requested > 0 ? requested + random.nextInt((int) Math.min(requested, 60_000) + 1) : wait / 2 + (long) (random.nextDouble() * wait / 2);
		wait = Math.max(wait, 1);
		about.setProperty("tries", String.valueOf(tries + 1));
		keep(name, about, wait);
		listener.waits(metadataOf(about), why, wait);
		return wait;
	}

	private void keep(String name, Properties about, long wait) {
		about.setProperty("due", String.valueOf(System.currentTimeMillis() + wait));
		about.setProperty("wait", String.valueOf(wait));
		try {
			queue.write(name, about);
		} catch (IOException full) {
			// only retried too early
		}
	}

	/** Ms until it is due; 0 also if that exceeds the requested wait, because the clock was set back. */
	private static long left(Properties about) {
		long left = number(about, "due", 0) - System.currentTimeMillis();
		return left <= 0 || left > number(about, "wait", MAX_REQUESTED_MS) ? 0 : left;
	}

	/** Applies the server's wait to all traces of the device. */
	private void hold(long wait) {
		Properties about = new Properties();
		about.setProperty("of", target());
		keep(SERVER, about, wait);
	}

	private long held() {
		Properties about = queue.read(SERVER);
		return target().equals(about.getProperty("of")) ? left(about) : 0; // a new key or server does not wait
	}

	private String target() {
		return UUID.nameUUIDFromBytes((server + "\n" + key).getBytes(StandardCharsets.UTF_8)).toString();
	}

	// --- the protocol ---

	private static final class Refused extends IOException {
		private static final long serialVersionUID = 1;
		final int status;
		final boolean rejected;
		final long requestedMs;

		Refused(int status, String message, boolean rejected, String retryAfter) {
			super(status + ": " + message);
			this.status = status;
			this.rejected = rejected;
			long seconds = 0;
			try {
				seconds = retryAfter == null ? 0 : Long.parseLong(retryAfter.trim());
			} catch (NumberFormatException aDate) {
				seconds = 60;
			}
			requestedMs = Math.max(0, Math.min(seconds, MAX_REQUESTED_MS / 1000)) * 1000;
		}

		boolean isOfKey() {
			return status == 401 || status == 403;
		}

		boolean isOfServer() {
			return isOfKey() || status == 429 || status == 503 || status == 507;
		}

		/** Long waits after refused keys and invalid requests: a new key or app version may succeed. */
		long waitMs(long tries) {
			if (requestedMs > 0) return requestedMs;
			if (isOfKey()) return HOUR_MS;
			boolean soon = status == 408 || status == 409 || status == 423 || status == 429 || status == 460;
			return status < 400 || status >= 500 || soon ? 0 : Math.min(HOUR_MS << Math.min(tries, 5), MAX_REQUESTED_MS);
		}
	}

	private void send(String name, File file, Properties about) throws IOException {
		long length = file.length();
		long offset = about.getProperty("location") == null ? -1 : offsetOf(about);
		if (offset < 0) {
			create(name, about, length);
			offset = 0;
		}
		try (InputStream in = new BufferedInputStream(new FileInputStream(file))) {
			skip(in, offset);
			byte[] piece = new byte[pieceBytes];
			while (offset < length) {
				int n = fill(in, piece);
				offset = sendPiece(about, piece, n, offset);
			}
		}
	}

	private void create(String name, Properties about, long length) throws IOException {
		HttpURLConnection c = connect(server.resolve("/api/v1/uploads").toURL(), "POST");
		c.setRequestProperty("Upload-Length", String.valueOf(length));
		c.setRequestProperty("Upload-Metadata", metadata(about));
		c.setRequestProperty("Idempotency-Key", printable(about.getProperty(KEY, name)));
		c.setDoOutput(true);
		c.setFixedLengthStreamingMode(0);
		c.getOutputStream().close();
		expect(c, 201);
		about.setProperty("location", server.resolve(header(c, "Location")).getPath());
		queue.write(name, about);
	}

	/** Bytes that the server has; -1 if it no longer has the upload. */
	private long offsetOf(Properties about) throws IOException {
		HttpURLConnection c = connect(at(about), "HEAD");
		int status = status(c);
		if (status == 404 || status == 410) return -1;
		if (status == 409) throw new Refused(status, OTHER, true, null);
		expect(c, 200);
		readTraceId(c, about);
		return Long.parseLong(header(c, "Upload-Offset"));
	}

	/** PATCH as a POST with an override: HttpURLConnection does not support PATCH. */
	private long sendPiece(Properties about, byte[] piece, int n, long offset) throws IOException {
		HttpURLConnection c = connect(at(about), "POST");
		c.setRequestProperty("X-HTTP-Method-Override", "PATCH");
		c.setRequestProperty("Content-Type", "application/offset+octet-stream");
		c.setRequestProperty("Upload-Offset", String.valueOf(offset));
		c.setRequestProperty("Upload-Checksum", "sha256 " + sha256(piece, n));
		c.setDoOutput(true);
		c.setFixedLengthStreamingMode(n);
		try (OutputStream out = c.getOutputStream()) {
			out.write(piece, 0, n);
		}
		int status = status(c);
		if (status == 404 || status == 410) throw new IOException("the upload no longer exists and starts again at the next attempt");
		if (status == 409 && offsetOf(about) < 0) throw new Refused(status, OTHER, true, null); // not a wrong offset: the server discarded the upload
		expect(c, 204);
		readTraceId(c, about);
		long now = Long.parseLong(header(c, "Upload-Offset"));
		if (now != offset + n) throw new IOException("the server is at " + now);
		return now;
	}

	private URL at(Properties about) throws IOException {
		return server.resolve(about.getProperty("location")).toURL();
	}

	private HttpURLConnection connect(URL url, String method) throws IOException {
		HttpURLConnection c = (HttpURLConnection) url.openConnection();
		c.setRequestMethod(method);
		c.setInstanceFollowRedirects(false); // the key is only for this server
		c.setConnectTimeout(connectMs);
		c.setReadTimeout(readMs);
		c.setRequestProperty("Authorization", "Bearer " + key);
		c.setRequestProperty("Tus-Resumable", "1.0.0");
		return c;
	}

	private static void readTraceId(HttpURLConnection c, Properties about) {
		String id = c.getHeaderField("Tracewell-Trace");
		if (id != null) about.setProperty("trace", id);
	}

	private static String header(HttpURLConnection c, String header) throws IOException {
		String value = c.getHeaderField(header);
		if (value == null) throw new IOException("a response without " + header);
		return value;
	}

	private static int status(HttpURLConnection c) throws IOException {
		try {
			return c.getResponseCode();
		} catch (HttpRetryException e) { // thrown for 401 after a streamed body
			return e.responseCode();
		}
	}

	/** Only tracewell itself rejects a trace for good; proxies and hotspots send these status codes too. */
	private static void expect(HttpURLConnection c, int status) throws IOException {
		int got = status(c);
		if (got == status) return;
		boolean ofTrace = got == 413 || got == 415 || got == 422;
		throw new Refused(got, body(c), ofTrace && c.getHeaderField("Tus-Resumable") != null, c.getHeaderField("Retry-After"));
	}

	private static String body(HttpURLConnection c) throws IOException {
		try (InputStream in = c.getErrorStream()) {
			if (in == null) return "";
			byte[] text = new byte[4096];
			return new String(text, 0, fill(in, text), StandardCharsets.UTF_8);
		}
	}

	private static String metadata(Properties about) {
		List<String> pairs = new ArrayList<>();
		for (String name : about.stringPropertyNames())
			if (name.startsWith(META))
				pairs.add(name.substring(META.length()) + " " + base64(about.getProperty(name)));
		pairs.add("sent_at " + base64(String.valueOf(System.currentTimeMillis())));
		return String.join(",", pairs);
	}

	private static String base64(String text) {
		return Base64.getEncoder().encodeToString(text.getBytes(StandardCharsets.UTF_8));
	}

	private static String sha256(byte[] bytes, int n) throws IOException {
		try {
			MessageDigest sum = MessageDigest.getInstance("SHA-256");
			sum.update(bytes, 0, n);
			return Base64.getEncoder().encodeToString(sum.digest());
		} catch (GeneralSecurityException none) {
			throw new IOException(none);
		}
	}

	private static int fill(InputStream in, byte[] piece) throws IOException {
		int n = 0;
		for (int got; n < piece.length && (got = in.read(piece, n, piece.length - n)) > 0;) n += got;
		return n;
	}

	private static void skip(InputStream in, long bytes) throws IOException {
		for (long left = bytes, got; left > 0; left -= got)
			if ((got = in.skip(left)) <= 0) throw new IOException("the queued trace is too short");
	}

	static long number(Properties about, String name, long otherwise) {
		try {
			return Long.parseLong(about.getProperty(name, ""));
		} catch (NumberFormatException none) {
			return otherwise;
		}
	}
}
