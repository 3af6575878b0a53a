/** Finds features that connected Envoys do not support in their version or build (docs/envoy-versions.md). */
import { configKeyText } from '../../../model/config/config.ts';
import { envoyVersionText, unsupportedEnvoyText, wasmUnsupportedReason } from '../../../model/node/envoy-build.ts';
import { withheldWasmKeys } from '../../../networking/patches/withheld-wasm.ts';
import type { FindDiagnostics } from './find-diagnostics.ts';

export const findUnsupportedEnvoys: FindDiagnostics = function* ({ proxies }, reportDiagnostic) {
  const problemsByVersion = new Map<string, { readonly reason: string; readonly firstProxy: string; count: number }>();
  for (const { proxy } of proxies) {
    yield;
    const reason = unsupportedEnvoyText(proxy.envoy?.version);
    if (reason === undefined) continue;
    const version = envoyVersionText(proxy.envoy?.version);
    const versionEntry = problemsByVersion.get(version);
    if (versionEntry === undefined) problemsByVersion.set(version, { reason, firstProxy: proxy.id, count: 1 });
    else versionEntry.count++;
  }
  for (const [version, { reason, firstProxy, count }] of problemsByVersion)
    reportDiagnostic(version, `${proxiesText(firstProxy, count)}: ${reason}`);
};

/** Wasm code is withheld because Envoy would crash or reject it. */
export const findWithheldWasm: FindDiagnostics = function* ({ proxies }, reportDiagnostic) {
  const unsupportedByKey = new Map<
    string,
    { readonly reason: string; readonly firstProxy: string; readonly object: string; count: number }
  >();
  for (const { proxy, shape, context } of proxies) {
    yield;
    for (const object of withheldWasmKeys(shape, context)) {
      const { kind, namespace, name } = object;
      const key = `${kind} ${namespace}/${name} ${envoyVersionText(proxy.envoy?.version)}`;
      const unsupportedEntry = unsupportedByKey.get(key);
      if (unsupportedEntry === undefined)
        unsupportedByKey.set(key, {
          reason: wasmUnsupportedReason(proxy.envoy) ?? '',
          firstProxy: proxy.id,
          object: configKeyText(object),
          count: 1,
        });
      else unsupportedEntry.count++;
    }
  }
  for (const [key, { reason, firstProxy, object, count }] of unsupportedByKey) {
    reportDiagnostic(
      key,
      `its code is not sent to ${proxiesText(firstProxy, count)}, where its failure policy applies: ${reason}`,
      {
        objects: [object],
      },
    );
  }
};

function proxiesText(firstProxy: string, count: number): string {
  return count === 1 ? firstProxy : `${count} proxies, such as ${firstProxy}`;
}
