package com.example.app;

import android.content.Context;
import android.os.Process;
import androidx.annotation.AnyThread;
import dev.tracewell.TraceZip;
import java.io.File;
import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.util.Map;
import java.util.Properties;

/** btrace 3.0 writes sampling and sampling-mapping to a folder per process. Call it at each start: those of earlier processes are complete. */
final class Btrace3 {
	private static final String LABEL = "build.properties";

	private Btrace3() {}

	@AnyThread
	static void collect(Context context, String scenario) {
		Tracing.IO.execute(() -> {
			File[] processes = new File(context.getFilesDir(), "rhea/tracing").listFiles();
			for (File process : processes == null ? new File[0] : processes)
				if (!process.getName().equals(String.valueOf(Process.myPid()))) take(context, scenario, process);
			label(new File(context.getFilesDir(), "rhea/tracing/" + Process.myPid()));
		});
	}

	/** Stores version and build: another version may be running when the files are collected. */
	private static void label(File own) {
		Properties of = new Properties();
		of.setProperty("version_name", BuildConfig.VERSION_NAME);
		of.setProperty("build_id", BuildConfig.BUILD_ID);
		own.mkdirs();
		try (OutputStream out = new FileOutputStream(new File(own, LABEL))) {
			of.store(out, null);
		} catch (IOException full) {
			// sent without version and build
		}
	}

	private static Properties labelOf(File process) {
		Properties of = new Properties();
		try (InputStream in = new FileInputStream(new File(process, LABEL))) {
			of.load(in);
		} catch (IOException | IllegalArgumentException none) {
			of.clear();
		}
		return of;
	}

	private static void take(Context context, String scenario, File process) {
		File sampling = new File(process, "sampling");
		File names = new File(process, "sampling-mapping");
		try {
			Map<String, String> about = Tracing.about(context, scenario);
			Properties of = labelOf(process);
			about.put("version_name", of.getProperty("version_name")); // null if unknown: another build's mapping would give wrong names
			about.put("build_id", of.getProperty("build_id"));
			about.remove("version_code");
			about.put("pid", process.getName());
			about.put("started_at", String.valueOf(sampling.lastModified()));
			File zip = File.createTempFile("btrace", ".zip", context.getCacheDir());
			int n = TraceZip.zip(zip, sampling, names);
			if (n > 0) Tracing.keep(context, zip, about, "btrace3-" + process.getName() + "-" + sampling.lastModified());
			for (File left : new File[] {sampling, names, new File(process, LABEL)}) left.delete();
			process.delete();
		} catch (IOException full) {
			// retried at the next start
		}
	}
}
