package com.example.app;

import android.content.Context;
import android.os.Environment;
import androidx.annotation.AnyThread;
import java.io.File;

/**
 * RheaTrace 1.0 writes rhea-atrace.gz to shared storage when its script stops it. The app needs the storage permission,
 * which Android 11 and later do not grant to apps that target them. Collects the file at the next start or after a stop.
 */
final class Rhea1 {
	private Rhea1() {}

	@AnyThread
	static void collect(Context context, String scenario) {
		Tracing.IO.execute(() -> {
			File left = new File(new File(Environment.getExternalStorageDirectory(), "rhea-trace/" + context.getPackageName()), "rhea-atrace.gz");
			File mine = new File(context.getCacheDir(), "rhea-" + left.lastModified() + ".gz");
			// moved, so that a later recording cannot replace it; on another volume it is left to the script
			if (left.isFile() && left.renameTo(mine)) Tracing.keep(context, mine, Tracing.about(context, scenario), mine.getName());
		});
	}
}
