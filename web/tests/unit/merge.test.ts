import assert from 'node:assert/strict';
import test from 'node:test';
import { mergePatch, type JsonObject } from '../../src/merge.ts';

const patched = (before: JsonObject, patch: JsonObject): JsonObject => {
  mergePatch(before, patch);
  return before;
};

test('a patch names what changes; the rest stays', () => {
  assert.deepEqual(patched({ a: { b: 1, c: 2 }, d: 3 }, { a: { c: 5 } }), { a: { b: 1, c: 5 }, d: 3 });
});

test('null takes a member out, at any depth', () => {
  assert.deepEqual(patched({ a: { b: 1, c: 2 }, d: 3 }, { a: { b: null }, d: null }), { a: { c: 2 } });
});

test('arrays are replaced whole, and may hold null', () => {
  assert.deepEqual(patched({ a: [1, 2, 3] }, { a: [4, null] }), { a: [4, null] });
});

test('an object takes the place of something else', () => {
  assert.deepEqual(patched({ a: 1, b: [1] }, { a: { x: 1 }, b: { y: 2 } }), { a: { x: 1 }, b: { y: 2 } });
});

test('objects that do not change are the same ones, so that who holds them sees the changes', () => {
  const inner: JsonObject = { x: 1 };
  const outer: JsonObject = { inner };
  mergePatch(outer, { inner: { x: 2 } });
  assert.equal(outer['inner'], inner);
  assert.equal(inner['x'], 2);
});
