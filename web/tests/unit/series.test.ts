import assert from 'node:assert/strict';
import test from 'node:test';
import { SeriesTable, rates } from '../../src/series.ts';

test('a column has a place for every time', () => {
  const table = new SeriesTable(100);
  table.add(1, [['a', 10]]);
  table.add(2, [['a', 11], ['b', 20]]);
  table.add(3, [['b', 21]]);
  assert.deepEqual(table.column('a'), [10, 11, null]);
  assert.deepEqual(table.column('b'), [null, 20, 21]);
  assert.deepEqual(table.column('unknown'), [null, null, null]);
});

test('what is older than the span goes, and a column without numbers with it', () => {
  const table = new SeriesTable(10);
  table.add(1, [['a', 1]]);
  table.add(5, [['b', 2]]);
  table.add(12, [['b', 3]]);
  assert.deepEqual(table.times, [5, 12]);
  assert.deepEqual(table.column('b'), [2, 3]);
  assert.deepEqual(table.namesUnder(''), ['b']);
});

test('what the router remembers is gone on with', () => {
  const table = new SeriesTable(100);
  table.load({ at_s: [1, 2], columns: { 'main/0/load/7': [5, null] } });
  table.add(3, [['main/0/load/7', 6]]);
  assert.deepEqual(table.column('main/0/load/7'), [5, null, 6]);
  assert.deepEqual(table.namesUnder('main/0/load/'), ['7']);
});

test('a rate is the change over the time between, and none after a restart of the counter', () => {
  assert.deepEqual(rates([0, 2, 3, 4, 5], [0, 100, 150, 10, null]), [null, 50, 50, null, null]);
});
