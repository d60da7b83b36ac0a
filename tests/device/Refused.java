import java.io.OutputStream;
import java.net.HttpRetryException;
import java.net.HttpURLConnection;
import java.net.URI;
import java.util.Scanner;

/** Uploads that are refused, for refused_uploads.test.mjs: a line "URL KEY ENCODING BYTES length|chunked" each, a status each. */
final class Refused {
	static int send(String url, String key, String encoding, long bytes, boolean chunked) throws Exception {
		HttpURLConnection c = (HttpURLConnection) URI.create(url).toURL().openConnection();
		c.setRequestMethod("POST");
		c.setRequestProperty("Authorization", "Bearer " + key);
		if (!encoding.equals("-")) c.setRequestProperty("Content-Encoding", encoding);
		if (chunked) c.setChunkedStreamingMode(16384);
		else c.setFixedLengthStreamingMode(bytes);
		c.setDoOutput(true);
		byte[] piece = new byte[16384];
		try (OutputStream out = c.getOutputStream()) {
			for (long at = 0; at < bytes; at += piece.length) out.write(piece);
		}
		try {
			return c.getResponseCode();
		} catch (HttpRetryException e) {
			return e.responseCode();
		} finally {
			c.disconnect();
		}
	}

	public static void main(String[] args) {
		Scanner in = new Scanner(System.in);
		while (in.hasNextLine()) {
			String[] a = in.nextLine().split(" ");
			try {
				System.out.println(send(a[0], a[1], a[2], Long.parseLong(a[3]), a[4].equals("chunked")));
			} catch (Exception e) {
				System.out.println(e);
			}
		}
	}
}
