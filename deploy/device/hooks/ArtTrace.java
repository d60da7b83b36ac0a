package com.example.app;

import android.content.Context;
import android.os.Debug;
import java.io.File;
import java.util.Map;

/** ART's recorder, without a library. Recording every call makes short methods many times slower; sampling costs less, but stops all threads. */
final class ArtTrace {
	/** Bytes; calls after it is full are lost. */
	private static final int BUFFER = 8 << 20;
	private static final int INTERVAL_US = 1000;
	private static File file;

	private ArtTrace() {}

	/** On any thread. False if a recording is running. */
	static synchronized boolean start(Context context, boolean everyCall) {
		if (file != null) return false;
		file = new File(context.getCacheDir(), "art-" + System.nanoTime() + ".trace");
		if (everyCall) Debug.startMethodTracing(file.getPath(), BUFFER);
		else Debug.startMethodTracingSampling(file.getPath(), BUFFER, INTERVAL_US);
		return true;
	}

	/** Stops all threads while it writes the buffer: call it after a frame, not during an animation. */
	static synchronized void stop(Context context, Map<String, String> about) {
		if (file == null) return;
		Debug.stopMethodTracing();
		Tracing.keep(context, file, about, null);
		file = null;
	}
}
