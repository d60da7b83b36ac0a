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
 * Sends traces from a device on a bad network to tracewell, without any library: a queue in a folder with a
 * bound, uploads in pieces (tus 1.0.0) that go on where they were cut, growing waits with jitter, and waits
 * that the server asks for. Runs on Android 8 (API 26) and on any JVM from 8 on.
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
 * A trace is compressed into the queue before add returns, so its file may go at once. When the queue is full,
 * the oldest goes to make room: a fresh trace says more.
 *
 * Threads: any but the main one: add compresses and syncs, sendNext waits for the network, the constructor reads
 * a folder. They do not wait for each other. Several uploaders and processes may share a folder; one sends at a time.
 */
public final class TraceUploader {
	/** What {@link #sendNext} gives when one was sent, or refused for good; else it gives the wait in ms. */
	public static final long SENT = 0;
	/** And when nothing is queued. */
	public static final long NOTHING = Long.MAX_VALUE;

	/** In the folder: until when the server wants to hear nothing. */
	static final String SERVER = "server";
	private static final String META = "meta.";
	private static final String KEY = "key";
	private static final String OTHER = "another trace came under this Idempotency-Key";
	private static final long HOUR_MS = 3600_000;
	private static final long MAX_ASKED_MS = 24 * HOUR_MS;

	/** What becomes of the traces, on the thread that called add or sendNext. */
	public static class Listener {
		/** It is on the server, under this id; {@link #page} has its address. */
		public void sent(Map<String, String> metadata, String traceId) {}

		/** The server will never take it; it is gone. */
		public void refused(Map<String, String> metadata, String why) {}

		/** The queue was full; it is gone. */
		public void dropped(Map<String, String> metadata) {}

		/** It is kept and tried again: no network, a wrong key, a server that is busy. */
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

	/** Traces that reached the server. */
	public int sent() {
		return sent.get();
	}

	/** Traces that went because the queue was full. */
	public int dropped() {
		return dropped.get();
	}

	/** Traces that the server will never take; {@link #lastRefusal} says why. */
	public int refused() {
		return refused.get();
	}

	public String lastRefusal() {
		return lastRefusal;
	}

	/** Bytes that wait, compressed. */
	public long queuedBytes() {
		return queue.bytes();
	}

	/** Where people see a trace. */
	public URI page(String traceId) {
		return server.resolve("/traces/" + traceId);
	}

	/** A trace that is sent once however often it is tried, and twice when it is added twice. */
	public boolean add(File trace, Map<String, String> metadata) throws IOException {
		return add(trace, metadata, UUID.randomUUID().toString());
	}

	/**
	 * Compresses a trace into the queue. Metadata: the names of the query of POST /api/v1/traces; started_at is
	 * when the file was last written, unless it says otherwise. Idempotency key: what is added twice under one
	 * is one trace. False when it alone is larger than the queue may be.
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
		for (Properties g : gone) listener.dropped(told(g));
		return true;
	}

	/** As a header may be: the server takes 255 bytes of printable ASCII. */
	private static String printable(String key) {
		boolean fits = key.length() > 0 && key.length() <= 255;
		for (int i = 0; i < key.length(); i++) fits &= key.charAt(i) > ' ' && key.charAt(i) <= '~';
		return fits ? key : UUID.nameUUIDFromBytes(key.getBytes(StandardCharsets.UTF_8)).toString();
	}

	private static Map<String, String> told(Properties about) {
		Map<String, String> metadata = new LinkedHashMap<>();
		for (String name : about.stringPropertyNames())
			if (name.startsWith(META)) metadata.put(name.substring(META.length()), about.getProperty(name));
		return metadata;
	}

	/**
	 * Tries the oldest trace that is due: SENT when it is done with, NOTHING when none waits, else for how
	 * many ms to wait before it is worth trying again (no network, a busy server, another that sends).
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
		} catch (IOException | IllegalArgumentException e) { // the latter: an answer that is none of ours
			return later(name, about, 0, String.valueOf(e.getMessage()));
		}
		sent.incrementAndGet();
		queue.forget(name);
		listener.sent(told(about), about.getProperty("trace", ""));
		return SENT;
	}

	private long refused(String name, Properties about, Refused e) {
		if (!e.forGood) {
			long wait = later(name, about, e.waitMs(number(about, "tries", 0)), e.getMessage());
			if (e.isOfServer()) hold(wait);
			return wait;
		}
		refused.incrementAndGet();
		lastRefusal = e.getMessage();
		queue.forget(name);
		listener.refused(told(about), e.getMessage());
		return SENT;
	}

	/** By what is asked for, else twice as long each time, and never all devices at once. */
	private long later(String name, Properties about, long asked, String why) {
		int tries = (int) number(about, "tries", 0);
		long wait = Math.min(maxWaitMs, firstWaitMs << Math.min(tries, 20));
		wait = asked > 0 ? asked + random.nextInt((int) Math.min(asked, 60_000) + 1) : wait / 2 + (long) (random.nextDouble() * wait / 2);
		wait = Math.max(wait, 1);
		about.setProperty("tries", String.valueOf(tries + 1));
		keep(name, about, wait);
		listener.waits(told(about), why, wait);
		return wait;
	}

	private void keep(String name, Properties about, long wait) {
		about.setProperty("due", String.valueOf(System.currentTimeMillis() + wait));
		about.setProperty("wait", String.valueOf(wait));
		try {
			queue.write(name, about);
		} catch (IOException full) {
			// tried again sooner than it should be, no more
		}
	}

	/** Ms until it is due; 0 also when that is further away than was asked for: the clock was set back. */
	private static long left(Properties about) {
		long left = number(about, "due", 0) - System.currentTimeMillis();
		return left <= 0 || left > number(about, "wait", MAX_ASKED_MS) ? 0 : left;
	}

	/** The server says wait to the device, not to one trace. */
	private void hold(long wait) {
		Properties about = new Properties();
		about.setProperty("of", whom());
		keep(SERVER, about, wait);
	}

	private long held() {
		Properties about = queue.read(SERVER);
		return whom().equals(about.getProperty("of")) ? left(about) : 0; // another key may do at once
	}

	private String whom() {
		return UUID.nameUUIDFromBytes((server + "\n" + key).getBytes(StandardCharsets.UTF_8)).toString();
	}

	// --- the protocol ---

	private static final class Refused extends IOException {
		private static final long serialVersionUID = 1;
		final int status;
		final boolean forGood;
		final long askedMs;

		Refused(int status, String message, boolean forGood, String retryAfter) {
			super(status + ": " + message);
			this.status = status;
			this.forGood = forGood;
			long seconds = 0;
			try {
				seconds = retryAfter == null ? 0 : Long.parseLong(retryAfter.trim());
			} catch (NumberFormatException aDate) {
				seconds = 60;
			}
			askedMs = Math.max(0, Math.min(seconds, MAX_ASKED_MS / 1000)) * 1000;
		}

		boolean isOfKey() {
			return status == 401 || status == 403;
		}

		boolean isOfServer() {
			return isOfKey() || status == 429 || status == 503 || status == 507;
		}

		/** A key can be replaced, and what was asked wrongly may be asked better by the next version of the app. */
		long waitMs(long tries) {
			if (askedMs > 0) return askedMs;
			if (isOfKey()) return HOUR_MS;
			boolean soon = status == 408 || status == 409 || status == 423 || status == 429 || status == 460;
			return status < 400 || status >= 500 || soon ? 0 : Math.min(HOUR_MS << Math.min(tries, 5), MAX_ASKED_MS);
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
		about.setProperty("location", server.resolve(said(c, "Location")).getPath());
		queue.write(name, about);
	}

	/** How much of it the server has; -1 when it does not know it any more. */
	private long offsetOf(Properties about) throws IOException {
		HttpURLConnection c = connect(at(about), "HEAD");
		int status = status(c);
		if (status == 404 || status == 410) return -1;
		if (status == 409) throw new Refused(status, OTHER, true, null);
		expect(c, 200);
		hear(c, about);
		return Long.parseLong(said(c, "Upload-Offset"));
	}

	/** PATCH by POST: the JVM's client cannot send the first. */
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
		if (status == 404 || status == 410) throw new IOException("the upload is gone: begun anew at the next try");
		if (status == 409 && offsetOf(about) < 0) throw new Refused(status, OTHER, true, null); // not the offset: it let go of it
		expect(c, 204);
		hear(c, about);
		long now = Long.parseLong(said(c, "Upload-Offset"));
		if (now != offset + n) throw new IOException("the server is at " + now);
		return now;
	}

	private URL at(Properties about) throws IOException {
		return server.resolve(about.getProperty("location")).toURL();
	}

	private HttpURLConnection connect(URL url, String method) throws IOException {
		HttpURLConnection c = (HttpURLConnection) url.openConnection();
		c.setRequestMethod(method);
		c.setInstanceFollowRedirects(false); // a key is for this server alone
		c.setConnectTimeout(connectMs);
		c.setReadTimeout(readMs);
		c.setRequestProperty("Authorization", "Bearer " + key);
		c.setRequestProperty("Tus-Resumable", "1.0.0");
		return c;
	}

	private static void hear(HttpURLConnection c, Properties about) {
		String id = c.getHeaderField("Tracewell-Trace");
		if (id != null) about.setProperty("trace", id);
	}

	private static String said(HttpURLConnection c, String header) throws IOException {
		String value = c.getHeaderField(header);
		if (value == null) throw new IOException("an answer without " + header);
		return value;
	}

	private static int status(HttpURLConnection c) throws IOException {
		try {
			return c.getResponseCode();
		} catch (HttpRetryException e) { // the JVM's word for 401 when a body was sent
			return e.responseCode();
		}
	}

	/** For good goes only what the server itself finds wrong with the trace: proxies and hotspots say such numbers, too. */
	private static void expect(HttpURLConnection c, int status) throws IOException {
		int got = status(c);
		if (got == status) return;
		boolean ofTrace = got == 413 || got == 415 || got == 422;
		throw new Refused(got, body(c), ofTrace && c.getHeaderField("Tus-Resumable") != null, c.getHeaderField("Retry-After"));
	}

	private static String body(HttpURLConnection c) throws IOException {
		try (InputStream in = c.getErrorStream()) {
			if (in == null) return "";
			byte[] said = new byte[4096];
			return new String(said, 0, fill(in, said), StandardCharsets.UTF_8);
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
