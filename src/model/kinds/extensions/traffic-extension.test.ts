import { expect, test } from 'vitest';
import { readConfigFile } from '../../config/config-file.ts';
import { problemText } from '../../config/problem.ts';

function problems(spec: string): readonly string[] {
  const text = `apiVersion: extensions.istio.io/v1alpha1
kind: TrafficExtension
metadata: { name: a, namespace: shop }
spec: ${spec}`;
  return readConfigFile('a.yaml', text, { creationTimestamp: 0 }).problems.map(problemText);
}

test.each([
  ['{ wasm: { url: reg.test/x }, phase: AUTHN, match: [{ mode: CLIENT }] }', 'use a WasmPlugin'],
  ['{ lua: { inlineCode: "function envoy_on_request(handle) end" }, priority: 1 }', 'use an EnvoyFilter'],
])('the TrafficExtension %s is accepted, but reported to have no effect', (spec, fix) => {
  expect(problems(spec)).toEqual([expect.stringMatching(`warning.*TrafficExtensions are not applied: ${fix}`)]);
});

test.each([
  ['{}', 'must have exactly one of wasm and lua'],
  ['{ wasm: { url: reg.test/x }, lua: { inlineCode: x } }', 'must have exactly one of wasm and lua'],
  ['{ wasm: {} }', 'url'],
  ['{ wasm: { url: "ftp://a.test/" } }', 'a URL with the scheme'],
  ['{ wasm: { url: reg.test/x, vmConfig: { env: [{ name: A }, { name: A }] } } }', 'variable'],
  ['{ lua: { inlineCode: "" } }', 'a text of 1 to 65536 characters'],
  ['{ lua: { inlineCode: x }, phase: UNSPECIFIED_PHASE }', 'phase'],
])('the TrafficExtension %s is rejected', (spec, message) => {
  expect(problems(spec).some((one) => one.includes('error') && one.includes(message))).toBe(true);
});
