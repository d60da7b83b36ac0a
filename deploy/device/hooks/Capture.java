package com.example.app;

import android.content.Context;
import androidx.annotation.AnyThread;
import androidx.annotation.WorkerThread;
import java.util.Map;
import org.json.JSONArray;
import org.json.JSONException;
import org.json.JSONObject;

/** What the server wants recorded: asked for in the background, answered from the file at a start that cannot wait. */
final class Capture {
	final String rule;
	final JSONObject record;

	private Capture(JSONObject of) {
		rule = of.optString("rule");
		record = of.optJSONObject("record");
	}

	/** How long to record, as the rule says it, and never longer than you can bear. */
	int maxSeconds(int most) {
		return record == null ? most : Math.min(record.optInt("max_seconds", most), most);
	}

	/** Call it at each start. */
	@AnyThread
	static void refresh(Context context) {
		Tracing.IO.execute(() -> Tracing.capture(context).get(Tracing.about(context, "")));
	}

	/** What was heard last for this scenario; null: do not record. */
	@WorkerThread
	static Capture of(Context context, String scenario) {
		if (!Tracing.isAllowed(context)) return null;
		try {
			String kept = Tracing.capture(context).kept();
			JSONArray captures = kept.isEmpty() ? null : new JSONObject(kept).optJSONArray("captures");
			for (int i = 0; captures != null && i < captures.length(); i++)
				if (captures.getJSONObject(i).optString("scenario").equals(scenario)) return new Capture(captures.getJSONObject(i));
		} catch (JSONException damaged) {
			// asked for again when it is old
		}
		return null;
	}

	/** To be sent with the trace, so that it counts for its rule. */
	Map<String, String> about(Context context, String scenario) {
		Map<String, String> about = Tracing.about(context, scenario);
		about.put("capture", rule);
		return about;
	}
}
