package dev.tracewell;

import java.io.ByteArrayOutputStream;
import java.io.File;
import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.net.HttpURLConnection;
import java.net.URI;
import java.net.URLEncoder;
import java.util.Map;
import java.util.Properties;

/**
 * The capture rules for this device, from GET /api/v1/capture. The response is stored in a file with its ETag and
 * requested again once it is older than the server's max-age, which costs an empty 304 if nothing changed. Without
 * a network the last response applies. It is JSON: {"max_age_s": ..., "captures": [...]}.
 */
public final class CaptureConfig {
	private static final int MAX_BYTES = 256 << 10;
	private static final long RETRY_MS = 5 * 60_000;
	private static final long MAX_AGE_MS = 7 * 24 * 3600_000L;
	/** The filters of rules. The scenario is not sent: one response, in one file, covers all scenarios. */
	private static final String[] FILTERS = {"app", "device", "device_id", "os", "version_name"};

	private final URI server;
	private final String key;
	private final File file;

	public CaptureConfig(URI server, String key, File file) {
		this.server = server;
		this.key = key;
		this.file = file;
	}

	/** The last response, "" if there is none. Sends no request: for a start that cannot wait for the network. */
	public synchronized String kept() {
		return read().getProperty("body", "");
	}

	/**
	 * The rules for this device, "" if none were ever received. Of about, the metadata of uploads, it sends app,
	 * version_name, device, os and device_id; when one of these changes (an update of the app), the rules are
	 * requested again immediately. May wait for the network: do not call it on the main thread.
	 */
	public synchronized String get(Map<String, String> about) {
		Properties kept = read();
		String query = query(about);
		boolean same = query.equals(kept.getProperty("query"));
		long now = System.currentTimeMillis();
		long due = TraceUploader.number(kept, "due", 0);
		long asked = TraceUploader.number(kept, "asked", 0);
		if (same && now < due && now >= asked && due - now <= MAX_AGE_MS) return kept.getProperty("body", "");
		try {
			request(query, same ? kept.getProperty("etag") : null, kept);
		} catch (IOException | IllegalArgumentException offline) { // the latter: a response of another server
			kept.setProperty("due", String.valueOf(now + RETRY_MS));
		}
		kept.setProperty("asked", String.valueOf(now));
		kept.setProperty("query", query);
		write(kept);
		return kept.getProperty("body", "");
	}

	private void request(String query, String etag, Properties kept) throws IOException {
		HttpURLConnection c = (HttpURLConnection) server.resolve("/api/v1/capture" + query).toURL().openConnection();
		c.setInstanceFollowRedirects(false);
		c.setConnectTimeout(15_000);
		c.setReadTimeout(15_000);
		c.setRequestProperty("Authorization", "Bearer " + key);
		if (etag != null) c.setRequestProperty("If-None-Match", etag);
		int status = c.getResponseCode();
		if (status != 200 && status != 304) throw new IOException("status " + status);
		if (status == 200) {
			kept.setProperty("body", body(c));
			kept.remove("etag");
			if (c.getHeaderField("ETag") != null) kept.setProperty("etag", c.getHeaderField("ETag"));
		}
		kept.setProperty("due", String.valueOf(System.currentTimeMillis() + maxAgeMs(c.getHeaderField("Cache-Control"))));
	}

	private static long maxAgeMs(String cacheControl) {
		if (cacheControl != null)
			for (String word : cacheControl.split(","))
				if (word.trim().startsWith("max-age=")) return Math.min(Long.parseLong(word.trim().substring(8)), MAX_AGE_MS / 1000) * 1000;
		return RETRY_MS;
	}

	private static String body(HttpURLConnection c) throws IOException {
		ByteArrayOutputStream all = new ByteArrayOutputStream();
		try (InputStream in = c.getInputStream()) {
			byte[] piece = new byte[8192];
			for (int n; (n = in.read(piece)) > 0;) {
				all.write(piece, 0, n);
				if (all.size() > MAX_BYTES) throw new IOException("the response is too large");
			}
		}
		return all.toString("UTF-8");
	}

	private static String query(Map<String, String> about) {
		StringBuilder s = new StringBuilder();
		try {
			for (String name : FILTERS) {
				String value = about == null ? null : about.get(name);
				if (value != null) s.append(s.length() == 0 ? '?' : '&').append(name).append('=').append(URLEncoder.encode(value, "UTF-8"));
			}
		} catch (java.io.UnsupportedEncodingException never) {
			throw new AssertionError(never);
		}
		return s.toString();
	}

	private Properties read() {
		Properties kept = new Properties();
		try (InputStream in = new FileInputStream(file)) {
			kept.load(in);
		} catch (IOException | IllegalArgumentException none) {
			kept.clear();
		}
		return kept;
	}

	private void write(Properties kept) {
		File next = new File(file.getPath() + ".next");
		try (FileOutputStream out = new FileOutputStream(next)) {
			kept.store(out, null);
		} catch (IOException full) {
			return;
		}
		next.renameTo(file);
	}
}
