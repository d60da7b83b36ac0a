package dev.tracewell;

import java.io.Closeable;
import java.io.File;
import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.RandomAccessFile;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Properties;
import java.util.Set;
import java.util.UUID;
import java.util.zip.GZIPOutputStream;

/**
 * The folder of queued traces: NAME.gz is a trace, NAME.properties its metadata; NAME.part and NAME.next are
 * incomplete versions of them. Several uploaders and processes may share a folder: names are unique, files that
 * others are writing are not touched, and one of them sends at a time.
 */
final class TraceQueue {
	private static final String BYTES = ".gz";
	private static final String ABOUT = ".properties";
	private static final long LEFT_BEHIND_MS = 3600_000;
	/** Folders that this process sends from. A file lock belongs to the process and is released when any stream of the file is closed. */
	private static final Set<String> SENDING = new HashSet<>();

	private final File folder;

	TraceQueue(File folder) {
		this.folder = folder;
		if (!folder.isDirectory() && !folder.mkdirs() && !folder.isDirectory())
			throw new IllegalArgumentException("cannot create " + folder);
		cleanUp();
	}

	/** Oldest first. */
	List<String> names() {
		String[] files = folder.list((dir, name) -> name.endsWith(BYTES));
		List<String> names = new ArrayList<>();
		for (String f : files == null ? new String[0] : files) names.add(f.substring(0, f.length() - BYTES.length()));
		names.sort(null);
		return names;
	}

	File file(String name) {
		return new File(folder, name + BYTES);
	}

	long bytes() {
		long bytes = 0;
		for (String name : names()) bytes += file(name).length();
		return bytes;
	}

	/** Returns the traces that were dropped for this one; null if it alone exceeds the limit. */
	List<Properties> add(File trace, Properties about, long maxBytes) throws IOException {
		// ASCII digits, whatever the locale
		String name = String.format(Locale.ROOT, "%013d-%s", System.currentTimeMillis(), UUID.randomUUID());
		File part = new File(folder, name + ".part");
		compress(trace, part);
		if (part.length() > maxBytes) {
			part.delete();
			return null;
		}
		try {
			write(name, about);
			return enter(part, name, maxBytes);
		} catch (IOException full) {
			part.delete();
			forget(name);
			throw full;
		}
	}

	/** Under the lock; compression, which takes long, is not. */
	private synchronized List<Properties> enter(File part, String name, long maxBytes) throws IOException {
		List<Properties> gone = makeRoom(maxBytes - part.length());
		if (!part.renameTo(file(name))) throw new IOException("cannot rename " + part);
		return gone;
	}

	boolean has(String property, String value) {
		for (String name : names())
			if (value.equals(read(name).getProperty(property))) return true;
		return false;
	}

	private List<Properties> makeRoom(long bytes) {
		List<Properties> gone = new ArrayList<>();
		long all = bytes();
		for (String name : names()) {
			if (all <= bytes) break;
			all -= file(name).length();
			gone.add(read(name));
			forget(name);
		}
		return gone;
	}

	void forget(String name) {
		file(name).delete();
		new File(folder, name + ABOUT).delete();
	}

	Properties read(String name) {
		Properties about = new Properties();
		try (InputStream in = new FileInputStream(new File(folder, name + ABOUT))) {
			about.load(in);
		} catch (IOException | IllegalArgumentException lost) {
			// sent without metadata
		}
		return about;
	}

	/** Completely or not at all, also after a power cut. */
	void write(String name, Properties about) throws IOException {
		File next = new File(folder, name + ".next");
		try (FileOutputStream out = new FileOutputStream(next)) {
			about.store(out, null);
			out.getFD().sync();
		}
		if (!next.renameTo(new File(folder, name + ABOUT))) throw new IOException("cannot rename " + next);
	}

	/** Lock for sending from this folder, until it is closed; null while another thread or process holds it. */
	Closeable lockSending() throws IOException {
		String path = folder.getCanonicalPath();
		synchronized (SENDING) {
			if (!SENDING.add(path)) return null;
		}
		RandomAccessFile file = null;
		boolean others = false;
		try {
			file = new RandomAccessFile(new File(folder, "lock"), "rw");
			others = file.getChannel().tryLock() == null;
		} catch (IOException noLocks) {
			// no locks on this file system: if two processes send a trace, its key makes it one
		}
		RandomAccessFile held = file;
		if (!others) return () -> unlock(path, held);
		unlock(path, file);
		return null;
	}

	private static void unlock(String path, RandomAccessFile file) throws IOException {
		synchronized (SENDING) {
			SENDING.remove(path);
			if (file != null) file.close();
		}
	}

	/** Deletes incomplete files of killed processes. Recent ones may be in use by another process. */
	private void cleanUp() {
		File[] files = folder.listFiles();
		long now = System.currentTimeMillis();
		for (File f : files == null ? new File[0] : files) {
			String name = f.getName();
			boolean incomplete = name.endsWith(".part") || name.endsWith(".next") || isAlone(name);
			if (incomplete && Math.abs(now - f.lastModified()) > LEFT_BEHIND_MS) f.delete();
		}
	}

	private boolean isAlone(String name) {
		return name.endsWith(ABOUT) && !name.equals(TraceUploader.SERVER + ABOUT)
				&& !file(name.substring(0, name.length() - ABOUT.length())).exists();
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
}
