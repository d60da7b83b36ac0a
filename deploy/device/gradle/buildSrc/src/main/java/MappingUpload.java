import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.UnsupportedEncodingException;
import java.net.HttpRetryException;
import java.net.HttpURLConnection;
import java.net.URI;
import java.net.URL;
import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;

/** Uploads a mapping and waits until it is compiled. Retries if the server restarts, the proxy has no backend or there is no network. */
public final class MappingUpload {
	private static final int TRIES = 6;
	private static final long WAIT_NS = 15 * 60_000_000_000L; // for the compilation
	private static final long EARLY_NS = 10_000_000_000L; // an earlier 202 means that the server did not wait
	private final URI server;
	private final String key;
	private final long firstWaitMs;

	public MappingUpload(URI server, String key, long firstWaitMs) {
		this.server = server;
		this.key = key;
		this.firstWaitMs = firstWaitMs;
	}

	/** Kind: methods (btrace, Matrix) or retrace (R8). Throws with the server's message. */
	public void send(String build, String kind, File file) throws IOException {
		long begin = System.nanoTime();
		for (int tries = 1;; tries++) {
			String trouble;
			boolean passes = true;
			long sent = System.nanoTime();
			try {
				HttpURLConnection c = put(at(build, kind), file);
				int status = status(c);
				if (status == 202 && System.nanoTime() - begin < WAIT_NS) { // stored and queued: the repeated request waits for the compilation
					tries--;
					if (System.nanoTime() - sent < EARLY_NS) pause(firstWaitMs);
					continue;
				}
				if (status / 100 == 2) return;
				trouble = status + ": " + body(c);
				passes = status >= 500 || status == 408 || status == 423 || status == 429;
			} catch (IOException e) {
				trouble = e.toString();
			}
			if (!passes || tries == TRIES) throw new IOException(file + " was not accepted by " + server + ": " + trouble);
			pause(firstWaitMs << (tries - 1));
		}
	}

	private URL at(String build, String kind) throws IOException {
		try {
			String id = URLEncoder.encode(build, "UTF-8").replace("+", "%20");
			return server.resolve("/api/v1/builds/" + id + "/" + kind + "?wait=60").toURL();
		} catch (UnsupportedEncodingException never) {
			throw new AssertionError(never);
		}
	}

	private HttpURLConnection put(URL to, File file) throws IOException {
		HttpURLConnection c = (HttpURLConnection) to.openConnection();
		c.setRequestMethod("PUT");
		c.setInstanceFollowRedirects(false); // the key is only for this server
		c.setConnectTimeout(15_000);
		c.setReadTimeout(120_000);
		c.setRequestProperty("Authorization", "Bearer " + key);
		c.setDoOutput(true);
		c.setFixedLengthStreamingMode(file.length());
		try (OutputStream out = c.getOutputStream()) {
			Files.copy(file.toPath(), out);
		}
		return c;
	}

	private static int status(HttpURLConnection c) throws IOException {
		try {
			return c.getResponseCode();
		} catch (HttpRetryException e) { // thrown for 401 after a streamed body
			return e.responseCode();
		}
	}

	private static String body(HttpURLConnection c) throws IOException {
		try (InputStream in = c.getErrorStream()) {
			if (in == null) return "";
			byte[] text = new byte[4096];
			int n = 0;
			for (int got; n < text.length && (got = in.read(text, n, text.length - n)) > 0;) n += got;
			return new String(text, 0, n, StandardCharsets.UTF_8);
		}
	}

	private static void pause(long ms) throws IOException {
		try {
			Thread.sleep(ms);
		} catch (InterruptedException e) {
			Thread.currentThread().interrupt();
			throw new IOException("stopped", e);
		}
	}
}
