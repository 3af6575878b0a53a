/** What the agent's calls of the control plane begin with, beside what proves who it is (spec/agent.md §8.1). */
import type { LogWarning } from '../../runtime/log-events/log-events.ts';

const prefix = 'XDS_HEADER_';

/** @returns `warnings` for what cannot be a header: it is left out, for it would make each call fail */
export function xdsHeaders(env: NodeJS.ProcessEnv): { headers: Record<string, string>; warnings: LogWarning[] } {
  const headers = new Map<string, string>();
  const warnings: LogWarning[] = [];
  const leaveOut = (variable: string): void => {
    warnings.push({ event: 'option.ignored', setting: variable, reason: 'must be a valid gRPC header' });
  };
  const cluster = clusterHeader(env);
  if (cluster !== undefined) headers.set('clusterid', cluster);
  else if (env.ISTIO_META_CLUSTER_ID) leaveOut('ISTIO_META_CLUSTER_ID');
  for (const [variable, said = ''] of Object.entries(env)) {
    if (!variable.startsWith(prefix)) continue;
    const name = variable.slice(prefix.length).toLowerCase();
    const value = valueOf(said);
    if (isName(name) && value !== undefined) headers.set(name, value);
    else leaveOut(variable);
  }
  return { headers: Object.fromEntries(headers), warnings };
}

/** Names that the environment cannot set as custom metadata: HTTP/2, gRPC and the token use them. */
const taken: ReadonlySet<string> = new Set(['te', 'content-type', 'authorization', 'host', 'connection', 'user-agent']);

function isName(name: string): boolean {
  return /^[0-9a-z_.-]+$/.test(name) && !taken.has(name) && !name.startsWith('grpc-') && !name.endsWith('-bin');
}

/** The cluster that this agent is in, as a header's value; undefined: nobody said, or it cannot be one. */
export function clusterHeader({ ISTIO_META_CLUSTER_ID: cluster = '' }: NodeJS.ProcessEnv): string | undefined {
  return valueOf(cluster) || undefined;
}

/** The value without the blanks around it, with which HTTP/2 refuses a call; undefined: it cannot be a header's. */
function valueOf(text: string): string | undefined {
  const value = text.trim();
  return /^[\x20-\x7e]*$/.test(value) ? value : undefined;
}
