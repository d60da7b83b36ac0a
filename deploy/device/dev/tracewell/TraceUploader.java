package dev.tracewell;

import java.io.BufferedInputStream;
import java.io.File;
import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.HttpURLConnection;
import java.net.URI;
import java.net.URL;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Random;
import java.util.UUID;
import java.util.zip.GZIPOutputStream;

/**
 * Sends traces from a device on a bad network to tracewell, without any library: a queue in a folder with a
 * bound, uploads in pieces (tus 1.0.0) that go on where they were cut, growing waits with jitter, and waits
 * that the server asks for. Runs on Android 8 (API 26) and on any JVM from 8 on.
 *
 * <pre>
 * TraceUploader uploader = new TraceUploader(URI.create("https://traces.example.com"), INGEST_KEY,
 *         new File(context.getNoBackupFilesDir(), "traces"));
 * uploader.add(traceFile, Map.of("app", "com.example.app", "version_name", "8.3.1", "build_id", BUILD_ID,
 *         "scenario", "cold_start", "device", Build.MODEL, "device_id", installationId));
 * // in a worker that runs when there is a network:
 * while (uploader.sendNext() == TraceUploader.SENT) { }
 * </pre>
 *
 * A trace is compressed into the queue before add returns, so its file may go at once. When the queue is full,
 * the oldest goes to make room: a fresh trace says more. Thread: any; one sends at a time.
 */
public final class TraceUploader {
	/** What {@link #sendNext} gives when one was sent, or refused for good; else it gives the wait in ms. */
	public static final long SENT = 0;
	/** And when nothing is queued. */
	public static final long NOTHING = Long.MAX_VALUE;

	private static final String BYTES = ".gz";
	private static final String ABOUT = ".properties";
	private static final String META = "meta.";
	private static final int NOT_KEYED_MS = 3600_000;

	private final URI server;
	private final String key;
	private final File folder;
	private final Random random = new Random();
	private long maxQueueBytes = 64L << 20;
	private int pieceBytes = 256 << 10;
	private long firstWaitMs = 2_000;
	private long maxWaitMs = 15 * 60_000;
	private int connectMs = 15_000;
	private int readMs = 60_000;
	private volatile int sent;
	private volatile int dropped;
	private volatile int refused;
	private volatile String lastRefusal = "";

	public TraceUploader(URI server, String key, File folder) {
		this.server = server;
		this.key = key;
		this.folder = folder;
		if (!folder.isDirectory() && !folder.mkdirs() && !folder.isDirectory())
			throw new IllegalArgumentException("cannot make " + folder);
		cleanUp();
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
		return sent;
	}

	/** Traces that went because the queue was full. */
	public int dropped() {
		return dropped;
	}

	/** Traces that the server will never take; {@link #lastRefusal} says why. */
	public int refused() {
		return refused;
	}

	public String lastRefusal() {
		return lastRefusal;
	}

	/** Bytes that wait, compressed. */
	public synchronized long queuedBytes() {
		long bytes = 0;
		for (File f : queue()) bytes += f.length();
		return bytes;
	}

	/**
	 * Compresses a trace into the queue. Metadata: the names of the query of POST /api/v1/traces.
	 * False when it alone is larger than the queue may be.
	 */
	public synchronized boolean add(File trace, Map<String, String> metadata) throws IOException {
		String name = String.format("%013d-%s", System.currentTimeMillis(), UUID.randomUUID());
		File part = new File(folder, name + ".part");
		compress(trace, part);
		if (part.length() > maxQueueBytes) {
			part.delete();
			return false;
		}
		Properties about = new Properties();
		for (Map.Entry<String, String> m : metadata.entrySet()) about.setProperty(META + m.getKey(), m.getValue());
		write(name, about);
		makeRoom(part.length());
		if (!part.renameTo(new File(folder, name + BYTES))) throw new IOException("cannot rename " + part);
		return true;
	}

	/**
	 * Tries the oldest trace that is due: SENT when it is done with, NOTHING when none waits, else for how
	 * many ms to wait before it is worth trying again (no network, a busy server).
	 */
	public synchronized long sendNext() {
		long soonest = NOTHING;
		long now = System.currentTimeMillis();
		for (File f : queue()) {
			String name = f.getName().substring(0, f.getName().length() - BYTES.length());
			Properties about = read(name);
			long due = Math.min(number(about, "due", 0), now + maxWaitMs); // clocks are set back, too
			if (due > now) {
				soonest = Math.min(soonest, due - now);
				continue;
			}
			return sendOne(name, f, about);
		}
		return soonest;
	}

	private long sendOne(String name, File file, Properties about) {
		try {
			send(name, file, about);
			sent++;
			forget(name);
			return SENT;
		} catch (Refused e) {
			if (!e.forGood) return later(name, about, e.waitMs);
			refused++;
			lastRefusal = e.getMessage();
			forget(name);
			return SENT;
		} catch (IOException e) {
			return later(name, about, 0);
		}
	}

	/** By what the server asks for, else twice as long each time, and never all devices at once. */
	private long later(String name, Properties about, long asked) {
		int tries = (int) number(about, "tries", 0);
		long wait = Math.min(maxWaitMs, firstWaitMs << Math.min(tries, 20));
		wait = asked > 0 ? asked + random.nextInt((int) Math.min(asked, 60_000) + 1) : wait / 2 + (long) (random.nextDouble() * wait / 2);
		about.setProperty("tries", String.valueOf(tries + 1));
		about.setProperty("due", String.valueOf(System.currentTimeMillis() + wait));
		try {
			write(name, about);
		} catch (IOException full) {
			// tried again sooner than it should be, no more
		}
		return Math.max(wait, 1);
	}

	// --- the protocol ---

	private static final class Refused extends IOException {
		private static final long serialVersionUID = 1;
		final boolean forGood;
		final long waitMs;

		Refused(int status, String message, String retryAfter) {
			super(status + ": " + message);
			boolean noKey = status == 401 || status == 403; // a key can be replaced
			forGood = status >= 400 && status < 500 && !noKey && status != 408 && status != 409 && status != 423 && status != 429;
			long seconds = 0;
			try {
				seconds = retryAfter == null ? 0 : Long.parseLong(retryAfter.trim());
			} catch (NumberFormatException aDate) {
				seconds = 60;
			}
			waitMs = seconds > 0 ? seconds * 1000 : noKey ? NOT_KEYED_MS : 0;
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
		c.setRequestProperty("Idempotency-Key", name);
		c.setDoOutput(true);
		c.setFixedLengthStreamingMode(0);
		c.getOutputStream().close();
		expect(c, 201);
		about.setProperty("location", server.resolve(c.getHeaderField("Location")).getPath());
		write(name, about);
	}

	/** How much of it the server has; -1 when it does not know it any more. */
	private long offsetOf(Properties about) throws IOException {
		HttpURLConnection c = connect(at(about), "HEAD");
		int status = c.getResponseCode();
		if (status == 404 || status == 410) return -1;
		expect(c, 200);
		return Long.parseLong(c.getHeaderField("Upload-Offset"));
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
		expect(c, 204);
		long now = Long.parseLong(c.getHeaderField("Upload-Offset"));
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

	private static void expect(HttpURLConnection c, int status) throws IOException {
		int got = c.getResponseCode();
		if (got != status) throw new Refused(got, body(c), c.getHeaderField("Retry-After"));
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
				pairs.add(name.substring(META.length()) + " "
						+ Base64.getEncoder().encodeToString(about.getProperty(name).getBytes(StandardCharsets.UTF_8)));
		return String.join(",", pairs);
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

	// --- the queue: NAME.gz is the trace, NAME.properties what is known of it ---

	private File[] queue() {
		File[] files = folder.listFiles((dir, name) -> name.endsWith(BYTES));
		if (files == null) return new File[0];
		Arrays.sort(files);
		return files;
	}

	private void makeRoom(long bytes) {
		long all = queuedBytes();
		for (File f : queue()) {
			if (all + bytes <= maxQueueBytes) return;
			all -= f.length();
			dropped++;
			forget(f.getName().substring(0, f.getName().length() - BYTES.length()));
		}
	}

	/** What a killed process left half made. */
	private void cleanUp() {
		File[] files = folder.listFiles();
		for (File f : files == null ? new File[0] : files) {
			String name = f.getName();
			boolean alone = name.endsWith(ABOUT)
					&& !new File(folder, name.substring(0, name.length() - ABOUT.length()) + BYTES).exists();
			if (alone || name.endsWith(".part") || name.endsWith(".next")) f.delete();
		}
	}

	private void forget(String name) {
		new File(folder, name + BYTES).delete();
		new File(folder, name + ABOUT).delete();
	}

	private Properties read(String name) {
		Properties about = new Properties();
		try (InputStream in = new FileInputStream(new File(folder, name + ABOUT))) {
			about.load(in);
		} catch (IOException | IllegalArgumentException lost) {
			// sent without what was known of it
		}
		return about;
	}

	/** Whole or not at all, also when the battery is pulled. */
	private void write(String name, Properties about) throws IOException {
		File next = new File(folder, name + ".next");
		try (FileOutputStream out = new FileOutputStream(next)) {
			about.store(out, null);
			out.getFD().sync();
		}
		if (!next.renameTo(new File(folder, name + ABOUT))) throw new IOException("cannot rename " + next);
	}

	private static void compress(File from, File to) throws IOException {
		try (InputStream in = new FileInputStream(from); FileOutputStream file = new FileOutputStream(to)) {
			GZIPOutputStream out = new GZIPOutputStream(file, 64 << 10);
			byte[] piece = new byte[64 << 10];
			for (int n; (n = in.read(piece)) > 0;) out.write(piece, 0, n);
			out.finish();
			file.getFD().sync();
		} catch (IOException e) {
			to.delete();
			throw e;
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

	private static long number(Properties about, String name, long otherwise) {
		try {
			return Long.parseLong(about.getProperty(name, ""));
		} catch (NumberFormatException none) {
			return otherwise;
		}
	}
}
