package com.example.app;

import android.content.Context;
import com.tencent.matrix.plugin.DefaultPluginListener;
import com.tencent.matrix.report.Issue;
import java.io.File;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;

/** new Matrix.Builder(app).pluginListener(new MatrixReports(app)): issues of the trace canary, method ids and all. */
final class MatrixReports extends DefaultPluginListener {
	private final Context context;

	MatrixReports(Context context) {
		super(context);
		this.context = context;
	}

	@Override
	public void onReportIssue(Issue issue) {
		super.onReportIssue(issue);
		String tag = issue.getTag();
		if (tag == null || !tag.startsWith("Trace_")) return; // of the others only numbers could be read
		String json = issue.getContent().toString(); // now: the object is not ours to keep
		Tracing.IO.execute(() -> write(json, tag));
	}

	private void write(String json, String tag) {
		try {
			File file = File.createTempFile("matrix", ".json", context.getCacheDir());
			try (OutputStream out = new FileOutputStream(file)) {
				out.write(json.getBytes(StandardCharsets.UTF_8));
			}
			Tracing.keep(context, file, Tracing.about(context, tag), null);
		} catch (IOException full) {
			// the next issue will do
		}
	}
}
