import { expect, it } from 'vitest';
import { runToEnd } from '../../../runtime/turns.ts';
import { objectWarnings } from './status-warnings.ts';

it.each([
  ['pilot_revocation_list_problems', 'Gateway/edge/front', 'RevocationListNotUsable'],
  ['pilot_wasm_withheld', 'WasmPlugin/shop/counts', 'WasmNotSupported'],
])('the diagnostic %s for %s becomes a condition with the reason %s', (metric, key, reason) => {
  const kind = key.slice(0, key.indexOf('/'));
  const objectsByKey = {
    get: (requestedKey: string) => (requestedKey === key ? { kind, generation: 3 } : undefined),
  } as never;
  const status = { [metric]: { subject: { message: 'because', objects: [key, 'Gateway/edge/unknown'] } } };
  const warnings = runToEnd(objectWarnings(status, { byKey: objectsByKey }));
  expect([...warnings]).toEqual([[key, { reason, generation: 3, text: expect.stringContaining('because') }]]);
});
