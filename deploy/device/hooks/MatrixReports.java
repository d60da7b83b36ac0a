package com.example.app;

import android.content.Context;
import com.tencent.matrix.plugin.DefaultPluginListener;
import com.tencent.matrix.report.Issue;
import java.io.File;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;

/** new Matrix.Builder(app).pluginListener(new MatrixReports(app)): sends issues of the trace canary with their method ids. */
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
		if (tag == null || !tag.startsWith("Trace_")) return; // other issues contain only numbers
		String json = issue.getContent().toString(); // now: Matrix may reuse the object
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
			// this issue is lost
		}
	}
}
