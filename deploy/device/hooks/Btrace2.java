package com.example.app;

import android.content.Context;
import androidx.annotation.MainThread;
import com.bytedance.rheatrace.atrace.RheaATrace;
import dev.tracewell.TraceZip;
import java.io.BufferedReader;
import java.io.File;
import java.io.FileReader;
import java.io.IOException;
import java.io.PrintWriter;
import java.util.Map;

/**
 * Controls btrace 2.0 (plugin 2.x) from the app; its script does so from a PC and pulls the files itself.
 * The library's start and stop are public but restricted: lint needs @SuppressLint("RestrictedApi").
 */
final class Btrace2 {
	private Btrace2() {}

	@MainThread
	static boolean start(Context context) {
		return RheaATrace.start(context, folder(context));
	}

	/** Stops on the main thread; another thread collects the files, which are complete when stop returns. */
	@MainThread
	static void stop(Context context, String scenario) {
		if (!RheaATrace.stop()) return;
		Map<String, String> about = Tracing.about(context, scenario);
		Tracing.IO.execute(() -> take(context, about));
	}

	private static void take(Context context, Map<String, String> about) {
		File folder = folder(context);
		try {
			File threads = new File(folder, "threads.txt");
			writeThreads(threads);
			File zip = File.createTempFile("btrace", ".zip", context.getCacheDir());
			TraceZip.zip(zip, new File(folder, "rhea-atrace.bin"), new File(folder, "rhea-atrace.gz"), new File(folder, "binder.txt"), threads);
			Tracing.keep(context, zip, about, null);
		} catch (IOException full) {
			// this recording is lost
		}
	}

	/** Lines of tid,name: the recording has only thread ids. */
	private static void writeThreads(File to) throws IOException {
		File[] tasks = new File("/proc/self/task").listFiles();
		try (PrintWriter out = new PrintWriter(to, "UTF-8")) {
			for (File task : tasks == null ? new File[0] : tasks)
				try (BufferedReader in = new BufferedReader(new FileReader(new File(task, "comm")))) {
					out.println(task.getName() + "," + in.readLine());
				} catch (IOException ended) {
					// the thread has ended
				}
		}
	}

	private static File folder(Context context) {
		return new File(context.getExternalFilesDir(""), "rhea-trace");
	}
}
