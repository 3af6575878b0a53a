import type { LogWarning } from '../../runtime/log-events/log-events.ts';

const prefix = 'XDS_HEADER_';

/** Omits values that are not valid in gRPC headers, because each call with them would fail. */
export function xdsHeaders(env: NodeJS.ProcessEnv): { headers: Record<string, string>; warnings: LogWarning[] } {
  const headers = new Map<string, string>();
  const warnings: LogWarning[] = [];
  const omitVariable = (variable: string): void => {
    warnings.push({ event: 'option.ignored', setting: variable, reason: 'must be a valid gRPC header' });
  };
  const cluster = clusterHeader(env);
  if (cluster !== undefined) headers.set('clusterid', cluster);
  else if (env.ISTIO_META_CLUSTER_ID) omitVariable('ISTIO_META_CLUSTER_ID');
  for (const [variable, text = ''] of Object.entries(env)) {
    if (!variable.startsWith(prefix)) continue;
    const name = variable.slice(prefix.length).toLowerCase();
    const value = valueOf(text);
    if (isName(name) && value !== undefined) headers.set(name, value);
    else omitVariable(variable);
  }
  return { headers: Object.fromEntries(headers), warnings };
}

/** HTTP/2, gRPC and the token use these headers. */
const reservedHeaders: ReadonlySet<string> = new Set([
  'te',
  'content-type',
  'authorization',
  'host',
  'connection',
  'user-agent',
]);

function isName(name: string): boolean {
  return (
    /^[0-9a-z_.-]+$/.test(name) && !reservedHeaders.has(name) && !name.startsWith('grpc-') && !name.endsWith('-bin')
  );
}

export function clusterHeader({ ISTIO_META_CLUSTER_ID: cluster = '' }: NodeJS.ProcessEnv): string | undefined {
  return valueOf(cluster) || undefined;
}

/** HTTP/2 rejects surrounding whitespace. */
function valueOf(text: string): string | undefined {
  const value = text.trim();
  return /^[\x20-\x7e]*$/.test(value) ? value : undefined;
}
