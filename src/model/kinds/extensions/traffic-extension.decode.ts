import { type Decoder, integer, oneOf, optional, refine, required, struct, text } from '../../fields/decode.ts';
import { withSchemaValidation } from '../../fields/description.ts';
import { withoutEffect } from '../../fields/effect.ts';
import * as violation from '../../fields/violation.ts';
import { scopeErrors, scopeFields, selectorRule } from '../policies/policy-target.decode.ts';
import type { TrafficExtension, WasmCode } from './traffic-extension.ts';
import { environmentErrors, wasmCodeFields, wasmMatches } from './wasm-plugin.decode.ts';

/** Limit in Istio's API. */
const maxLuaLength = 64 * 1024;

const luaCode: Decoder<string> = withSchemaValidation(
  refine(text, (code, path) =>
    violation.errorsAt(
      path,
      code.length >= 1 && code.length <= maxLuaLength
        ? undefined
        : violation.mustBe(`a text of 1 to ${maxLuaLength} characters`, `${code.length} characters`),
    ),
  ),
  { minLength: 1, maxLength: maxLuaLength },
);

export const trafficExtension: Decoder<TrafficExtension> = withSchemaValidation(
  refine(
    struct<TrafficExtension>({
      ...scopeFields,
      phase: optional(oneOf(['UNSPECIFIED', 'AUTHN', 'AUTHZ', 'STATS'])),
      priority: optional(integer(-(2 ** 31), 2 ** 31 - 1)),
      match: optional(wasmMatches),
      wasm: withoutEffect(
        optional(refine(struct<WasmCode>(wasmCodeFields), environmentErrors)),
        'TrafficExtensions are not applied: use a WasmPlugin',
      ),
      lua: withoutEffect(
        optional(struct<{ inlineCode: string }>({ inlineCode: required(luaCode) })),
        'TrafficExtensions are not applied: use an EnvoyFilter',
      ),
    }),
    (extension, path) => [
      ...scopeErrors(extension, path),
      ...violation.errorsAt(
        path,
        (extension.wasm === undefined) === (extension.lua === undefined)
          ? violation.disallowedValue('must have exactly one of wasm and lua')
          : undefined,
      ),
    ],
  ),
  {
    rules: [
      selectorRule,
      { rule: 'has(self.wasm) != has(self.lua)', message: 'must have exactly one of wasm and lua' },
    ],
  },
);
