/** Without a request handler, a Lua filter does nothing; otherwise the outcome is `not decided`. */
import type { DataSource } from '../../../gen/envoy/config/core/v3/base_pb.ts';
import type { Lua, LuaPerRoute } from '../../../gen/envoy/extensions/filters/http/lua/v3/lua_pb.ts';
import { type FilterResult, UndecidedError } from './filter-result.ts';

/** Lua expressions that can define a global function indirectly. */
const indirectDefinition = /\b(?:_G|_ENV|load|loadstring|loadfile|dofile|setfenv|require|rawset|module)\b/;

export function evaluateLua(
  { inlineCode, defaultSourceCode, sourceCodes }: Lua,
  perRoute: LuaPerRoute | undefined,
): FilterResult {
  const override = perRoute?.override;
  if (override?.case === 'disabled' && override.value) return undefined;
  const source =
    override?.case === 'sourceCode'
      ? textOf(override.value)
      : override?.case === 'name'
        ? textOf(sourceCodes[override.value])
        : (textOf(defaultSourceCode) ?? inlineCode);
  if (source === undefined) throw new UndecidedError('its code is in a file, which is not read');
  if (!source.includes('envoy_on_request') && !indirectDefinition.test(source)) return undefined;
  throw new UndecidedError('its code can respond to requests');
}

function textOf(source: DataSource | undefined): string | undefined {
  return source?.specifier.case === 'inlineString' ? source.specifier.value : undefined;
}
