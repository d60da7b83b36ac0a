package dev.tracewell;

import java.io.File;
import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.util.zip.ZipEntry;
import java.util.zip.ZipOutputStream;

/** Zips the files of one recording: the server recognises them by content, not by name. */
public final class TraceZip {
	private TraceZip() {}

	/** Zips the files that exist and returns their number; without any, writes no zip. Do not call it on the main thread. */
	public static int zip(File to, File... files) throws IOException {
		int n = 0;
		try (ZipOutputStream zip = new ZipOutputStream(new FileOutputStream(to))) {
			for (File file : files)
				if (file.isFile()) add(zip, file, n++ + "-" + file.getName());
		} catch (IOException e) {
			to.delete();
			throw e;
		}
		if (n == 0) to.delete();
		return n;
	}

	private static void add(ZipOutputStream zip, File file, String name) throws IOException {
		zip.putNextEntry(new ZipEntry(name));
		try (InputStream in = new FileInputStream(file)) {
			byte[] piece = new byte[64 << 10];
			for (int n; (n = in.read(piece)) > 0;) zip.write(piece, 0, n);
		}
		zip.closeEntry();
	}
}
