package com.example.app;

import android.content.Context;
import android.os.Environment;
import androidx.annotation.AnyThread;
import java.io.File;

/**
 * RheaTrace 1.0 writes rhea-atrace.gz on shared storage when its script stops it: the app needs the storage permission,
 * which Android 11 and later give to no app that targets them. The file is taken at the next start, or after your own stop.
 */
final class Rhea1 {
	private Rhea1() {}

	@AnyThread
	static void collect(Context context, String scenario) {
		Tracing.IO.execute(() -> {
			File left = new File(new File(Environment.getExternalStorageDirectory(), "rhea-trace/" + context.getPackageName()), "rhea-atrace.gz");
			File mine = new File(context.getCacheDir(), "rhea-" + left.lastModified() + ".gz");
			// moved aside, so that no later recording is taken for it; another volume: leave it to the script
			if (left.isFile() && left.renameTo(mine)) Tracing.keep(context, mine, Tracing.about(context, scenario), mine.getName());
		});
	}
}
