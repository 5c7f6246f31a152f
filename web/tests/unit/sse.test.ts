import assert from 'node:assert/strict';
import test from 'node:test';
import { EventParser } from '../../src/sse.ts';

const STREAM = 'event: state\ndata: {"a":1}\n\n: a comment\n\nevent: delta\ndata: {"b":2}\n\n';

test('events do not depend on how the network cut them', () => {
  const whole = new EventParser().push(STREAM);
  assert.deepEqual(whole, [
    { event: 'state', data: '{"a":1}' },
    { event: 'delta', data: '{"b":2}' },
  ]);
  for (let size = 1; size < STREAM.length; ++size) {
    const parser = new EventParser();
    const events = [];
    for (let at = 0; at < STREAM.length; at += size) events.push(...parser.push(STREAM.slice(at, at + size)));
    assert.deepEqual(events, whole);
  }
});

test('an event that is not complete is not told', () => {
  assert.deepEqual(new EventParser().push('event: state\ndata: {}\n'), []);
});
