package com.example.app;

import android.content.Context;
import androidx.annotation.AnyThread;
import androidx.annotation.WorkerThread;
import java.util.Map;
import org.json.JSONArray;
import org.json.JSONException;
import org.json.JSONObject;

/** The server's capture rule for a scenario: requested in the background, read from a file by a start that cannot wait. */
final class Capture {
	final String rule;
	final JSONObject record;

	private Capture(JSONObject of) {
		rule = of.optString("rule");
		record = of.optJSONObject("record");
	}

	/** The rule's recording time, at most your own limit. */
	int maxSeconds(int most) {
		return record == null ? most : Math.min(record.optInt("max_seconds", most), most);
	}

	/** Updates the stored rules. Call it at each start. */
	@AnyThread
	static void refresh(Context context) {
		Tracing.IO.execute(() -> Tracing.capture(context).get(Tracing.about(context, "")));
	}

	/** The last received rule for this scenario; null: do not record. */
	@WorkerThread
	static Capture of(Context context, String scenario) {
		if (!Tracing.isAllowed(context)) return null;
		try {
			String kept = Tracing.capture(context).kept();
			JSONArray captures = kept.isEmpty() ? null : new JSONObject(kept).optJSONArray("captures");
			for (int i = 0; captures != null && i < captures.length(); i++)
				if (captures.getJSONObject(i).optString("scenario").equals(scenario)) return new Capture(captures.getJSONObject(i));
		} catch (JSONException damaged) {
			// requested again when it expires
		}
		return null;
	}

	/** Metadata for the trace, so that it is counted for its rule. */
	Map<String, String> about(Context context, String scenario) {
		Map<String, String> about = Tracing.about(context, scenario);
		about.put("capture", rule);
		return about;
	}
}
