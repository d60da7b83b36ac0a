import assert from 'node:assert/strict';
import { test } from 'node:test';
import { searchTerm } from '../src/app/pasted';

test('text pasted from an address, a stack, dex or smali is reduced to the name', () => {
	const ID = '01M8K3V3MR5B2FSKH7C4MJBCEP';
	for (const [text, name] of [
		[`https://tracewell.example.com/traces/${ID}?tab=methods&project=shop`, ID],
		['  at com.acme.JsonParser.parse(JsonParser.java:12)', 'com.acme.JsonParser.parse'],
		['at com.acme.App$$ExternalSyntheticLambda0.run(D8$$SyntheticClass:0)', 'com.acme.App$$ExternalSyntheticLambda0.run'],
		['Gson.fromJson(String, Class)', 'Gson.fromJson'],
		['com.acme.Ads.warmUp()', 'com.acme.Ads.warmUp'],
		['Lcom/acme/JsonParser;', 'com.acme.JsonParser'],
		['Lcom/acme/JsonParser;->parse(Ljava/lang/String;)V', 'com.acme.JsonParser.parse'],
		['com/acme/JsonParser', 'com.acme.JsonParser'],
	]) assert.equal(searchTerm(text), name);
});

test('other text is searched unchanged', () => {
	for (const text of ['JsonParser.parse', '*.warmUp', 'main lambda run', 'com.a.App.lambda$onCreate$0', 'Choreographer#doFrame 12', '<init>', 'Deadlock of Cart', 'at work', '8.4.0 (beta)', 'Galaxy A15', '/traces/x'])
		assert.equal(searchTerm(text), text);
});
