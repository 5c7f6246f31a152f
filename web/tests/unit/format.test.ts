import assert from 'node:assert/strict';
import test from 'node:test';
import { ago, calmTop, compact, milliseconds, niceTicks, percent, score, whole } from '../../src/format.ts';

const plain = (text: string): string => text.replaceAll('\u202f', ' ').replaceAll('\u2212', '-');

test('numbers have three digits and a prefix', () => {
  const words = [0, 7, 950, 999, 1000, 1234, 45_678, 99_950, 123_456, 999_499, 999_500, 1_200_000, -4500].map(compact);
  assert.deepEqual(words.map(plain), [
    '0', '7', '950', '999', '1.00 k', '1.23 k', '45.7 k', '100 k', '123 k', '999 k', '1.00 M', '1.20 M', '-4.50 k',
  ]);
  assert.equal(compact(0.12345), '0.123');
});

test('whole numbers are grouped', () => {
  assert.deepEqual([0, 999, 1000, 1234567, -1000].map(whole).map(plain), ['0', '999', '1 000', '1 234 567', '-1 000']);
});

test('shares, times and scores', () => {
  assert.equal(percent(0.12345), '12.3');
  assert.deepEqual([0, 19.94, 250, 1500, 25_000, 180_000].map(milliseconds), [
    ['0.0', 'ms'], ['19.9', 'ms'], ['250', 'ms'], ['1.50', 's'], ['25.0', 's'], ['3.0', 'min'],
  ]);
  assert.deepEqual([0.04, 9.94, 59, 119, 600, 7200].map(ago).map(plain), ['0.0 s', '9.9 s', '59 s', '119 s', '10 min', '2 h']);
  assert.deepEqual([0, 12, -0.123456, -123456].map(score).map(plain), ['0', '12', '-0.1235', '-123 k']);
});

test('ticks are round, begin at 0 and reach the most', () => {
  assert.deepEqual(niceTicks(100, 4), [0, 25, 50, 75, 100]);
  assert.deepEqual(niceTicks(45_678, 4), [0, 20_000, 40_000, 60_000]);
  assert.deepEqual(niceTicks(0, 4), [0, 1]);
  for (const most of [1, 3, 7.2, 99, 101, 123_456, 9.99e6]) {
    const ticks = niceTicks(most, 4);
    assert.ok((ticks.at(-1) ?? 0) >= most, `${most}: ${ticks}`);
    assert.ok(ticks.length <= 6, `${most}: ${ticks}`);
  }
});

test('the top of an axis rises at once and falls only when little of it is used', () => {
  const high = calmTop(0, 100, 4);
  assert.equal(high, 100);
  assert.equal(calmTop(high, 101, 4), 150);
  assert.equal(calmTop(high, 60, 4), 100);
  assert.equal(calmTop(high, 40, 4), 40);
});
