// merge.ts - changes of a JSON document (JSON Merge Patch, RFC 7396), applied in place.

export type Json = null | boolean | number | string | Json[] | JsonObject;
export interface JsonObject {
  [name: string]: Json;
}

const isObject = (value: Json | undefined): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

// Makes `target` what the patch says; null takes a member out, arrays are replaced whole.
export function mergePatch(target: JsonObject, patch: JsonObject): void {
  for (const [name, value] of Object.entries(patch)) {
    if (value === null) {
      delete target[name];
    } else if (isObject(value)) {
      const old = target[name];
      const inner: JsonObject = isObject(old) ? old : {};
      target[name] = inner;
      mergePatch(inner, value);
    } else {
      target[name] = value;
    }
  }
}
