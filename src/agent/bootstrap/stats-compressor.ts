import type { LogWarning } from '../../runtime/log-events/log-events.ts';

type Json = Record<string, unknown>;

const annotation = 'sidecar.istio.io/statsCompression';

const libraries: ReadonlyMap<string, string> = new Map([
  ['gzip', 'envoy.extensions.compression.gzip.compressor.v3.Gzip'],
  ['brotli', 'envoy.extensions.compression.brotli.compressor.v3.Brotli'],
  ['zstd', 'envoy.extensions.compression.zstd.compressor.v3.Zstd'],
]);

/** @returns the HTTP filter; `undefined` if the annotation is missing or, with a warning, unknown */
export function statsCompressor(
  annotations: Readonly<Record<string, string>>,
  { warnings }: { readonly warnings: LogWarning[] },
): Json | undefined {
  const value = annotations[annotation];
  if (!value) return undefined;
  const library = libraries.get(value);
  if (library === undefined) {
    const reason = `must be one of ${[...libraries.keys()].join(', ')}`;
    const setting = `annotation ${annotation}`;
    warnings.push({ event: 'option.ignored', setting, value: value.slice(0, 100), reason });
    return undefined;
  }
  return {
    name: 'envoy.filters.http.compressor',
    typed_config: {
      '@type': 'type.googleapis.com/envoy.extensions.filters.http.compressor.v3.Compressor',
      compressor_library: { name: value, typed_config: { '@type': `type.googleapis.com/${library}` } },
    },
  };
}
