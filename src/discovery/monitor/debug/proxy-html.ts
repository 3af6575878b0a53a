/** The page contains no scripts. */
import { ownValue } from '../../../runtime/json-object.ts';
import { markupText } from '../../../runtime/markup-text.ts';
import type { ProxyDescription, TypeDescription } from './proxy-description.ts';
import type { SyncState } from './sync-state.ts';

/** @param showsDetails set if the caller selected proxies */
export function proxiesPage(proxies: readonly ProxyDescription[], { showsDetails }: { showsDetails: boolean }): string {
  const title = showsDetails ? `Proxy ${proxies[0]?.proxy ?? ''}` : 'Proxies';
  const body = showsDetails ? proxies.map(detail).join('\n') : overview(proxies);
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>${markupText(title)} – pilot-discovery</title>
<meta name="viewport" content="width=device-width"><style>${style}</style></head>
<body><header><a href="/debug">debug</a> › ${showsDetails ? '<a href="/debug/proxyz">proxyz</a> › ' : ''}<b>${markupText(title)}</b></header>
${body}
</body></html>
`;
}

function overview(proxies: readonly ProxyDescription[]): string {
  if (proxies.length === 0) return '<p>No proxy is connected.</p>';
  const types = [...new Set(proxies.flatMap((proxy) => proxy.types.map(({ type }) => type)))].sort(compareState);
  const columnNames = ['proxy', 'namespace', 'protocol', 'connected', ...types.map(shortName), 'buffered bytes'];
  return `<p>${summary(proxies)}</p>
<table><thead><tr>${columnNames.map(headerCell).join('')}</tr></thead>
<tbody>${proxies.map((proxy) => overviewRow(proxy, types)).join('\n')}</tbody></table>`;
}

function overviewRow(proxy: ProxyDescription, types: readonly string[]): string {
  const link = `/debug/proxyz?proxyID=${encodeURIComponent(proxy.connectionId)}`;
  const states = types.map((type) => {
    const typeState = proxy.types.find((candidate) => candidate.type === type);
    return typeState === undefined
      ? '<td class="none">–</td>'
      : `<td>${badge(typeState.state, typeState.rejected)}</td>`;
  });
  return `<tr><td><a href="${markupText(link)}">${markupText(proxy.proxy)}</a></td><td>${markupText(proxy.namespace)}</td>
<td>${proxy.protocol}</td><td>${time(proxy.connectedAt)}</td>${states.join('')}<td class="number">${waitingCell(proxy)}</td></tr>`;
}

function detail(proxy: ProxyDescription): string {
  const facts: [string, string][] = [
    ['connection', markupText(proxy.connectionId)],
    ['kind', markupText(`${proxy.type} of namespace ${proxy.namespace}, cluster ${proxy.cluster || 'unknown'}`)],
    ['Istio version', markupText(proxy.version || 'unknown')],
    ['Envoy', markupText([proxy.envoy ?? 'unknown', proxy.envoyProblem].filter(Boolean).join(': '))],
    ...(proxy.limitations
      ? [['not supported by gRPC', markupText(proxy.limitations.join('; '))] as [string, string]]
      : []),
    ['address', markupText(proxy.address)],
    ['protocol', `${proxy.protocol}, connection ${markupText(proxy.state)}`],
    ['connected since', time(proxy.connectedAt)],
    ['push context', markupText(proxy.context)],
    ['send buffer', `${waitingCell(proxy)} bytes`],
  ];
  const columnNames = ['type', 'state', 'watches', 'resources', 'sent', 'acknowledged', 'pending'];
  return `<section><h1>${markupText(proxy.proxy)} ${badge(proxy.worst)}</h1>
<dl>${facts.map(([name, value]) => `<dt>${name}</dt><dd>${value}</dd>`).join('')}</dl>
<table><thead><tr>${columnNames.map(headerCell).join('')}</tr></thead>
<tbody>${[...proxy.types]
    .sort((a, b) => compareState(a.type, b.type))
    .map(detailRow)
    .join('\n')}</tbody></table>
<p>${links(proxy)}</p></section>`;
}

function headerCell(name: string): string {
  return `<th${['resources', 'buffered bytes'].includes(name) ? ' class="number"' : ''}>${markupText(name)}</th>`;
}

function detailRow(type: TypeDescription): string {
  const { sent, acknowledged } = type;
  const row = `<tr><td title="${markupText(type.typeUrl)}">${markupText(shortName(type.type))}</td><td>${badge(type.state)}</td>
<td>${type.watches === '*' ? 'all' : `${type.watches} names`}</td><td class="number">${type.resources ?? '–'}</td>
<td>${version(sent.version)}<small>${sent.at === '' ? '' : `<br>at ${time(sent.at)}`}</small></td>
<td>${acknowledged.nonce === sent.nonce && sent.nonce !== '' ? 'the same' : version(acknowledged.version)}</td>
<td>${markupText(type.pending ?? '')}</td></tr>`;
  const reasons = [
    ...(type.rejected === undefined ? [] : [`rejected: <code>${markupText(type.rejected)}</code>`]),
    ...waitLines(type),
    ...(type.evicted === undefined ? [] : [`${type.evicted} removed clusters evicted early`]),
  ];
  return [row, ...reasons.map((reasonText) => `<tr class="why"><td></td><td colspan="6">${reasonText}</td></tr>`)].join(
    '',
  );
}

function waitLines({ waits = [], moreWaits = 0 }: TypeDescription): readonly string[] {
  const waitTexts = waits.map(({ kind, name, why }) => `${kind}: <code>${markupText(name)}</code>: ${markupText(why)}`);
  return moreWaits === 0 ? waitTexts : [...waitTexts, `${moreWaits} more: add &amp;allWaits to the address`];
}

function links({ connectionId }: ProxyDescription): string {
  const query = `?pretty&amp;proxyID=${markupText(encodeURIComponent(connectionId))}`;
  return ['config_dump', 'edsz', 'sidecarz', 'adsz']
    .map((name) => `<a href="/debug/${name}${query}">${name}</a>`)
    .join(' · ');
}

function summary(proxies: readonly ProxyDescription[]): string {
  const count = (state: SyncState): number => proxies.filter(({ worst }) => worst === state).length;
  const stateCounts = (['SYNCED', 'STALE', 'ERROR', 'NOT_SENT'] as const).flatMap((state) => {
    return count(state) === 0 ? [] : [`${count(state)} ${badge(state)}`];
  });
  const slowCount = proxies.filter((proxy) => proxy.slow).length;
  return [`${proxies.length} connected`, ...stateCounts, ...(slowCount > 0 ? [`${slowCount} slow`] : [])].join(', ');
}

const stateTexts: Readonly<Record<SyncState, string>> = {
  SYNCED: 'synced',
  STALE: 'not acknowledged',
  ERROR: 'rejected',
  NOT_SENT: 'not sent',
};

function badge(state: SyncState, reasonText = ''): string {
  return `<span class="badge ${state}"${reasonText === '' ? '' : ` title="${markupText(reasonText)}"`}>${stateTexts[state]}</span>`;
}

function waitingCell({ slow, unflushedBytes }: ProxyDescription): string {
  return slow ? `<b class="slow">${unflushedBytes} (slow)</b>` : String(unflushedBytes);
}

function version(text: string): string {
  return text === '' ? 'nothing' : `<code>${markupText(text)}</code>`;
}

function time(iso: string): string {
  return `<time>${markupText(iso.replace('T', ' ').replace(/\.\d+Z$/, ' UTC'))}</time>`;
}

/** Types in the order in which Envoy applies them. Other types come last. */
const typeOrder = ['Cluster', 'ClusterLoadAssignment', 'Listener', 'RouteConfiguration'];
const shortNames: Readonly<Record<string, string>> = {
  Cluster: 'clusters',
  ClusterLoadAssignment: 'endpoints',
  Listener: 'listeners',
  RouteConfiguration: 'routes',
  Secret: 'secrets',
};

function messageName(type: string): string {
  return type.slice(type.lastIndexOf('.') + 1);
}

function shortName(type: string): string {
  return ownValue(shortNames, messageName(type)) ?? type;
}

function compareState(a: string, b: string): number {
  const rank = (type: string): number =>
    (typeOrder.indexOf(messageName(type)) + typeOrder.length + 1) % (typeOrder.length + 1);
  return rank(a) - rank(b) || (a < b ? -1 : 1);
}

const style = `
:root { color-scheme: light dark; --line: #8884; --faint: color-mix(in srgb, CanvasText 62%, Canvas); }
body { font: 14px/1.5 system-ui, sans-serif; margin: 1rem 1.5rem; }
header { color: var(--faint); border-bottom: 1px solid var(--line); padding-bottom: .4rem; }
header b { color: CanvasText; } h1 { font-size: 1.3rem; margin: 1.2rem 0 .6rem; }
table { border-collapse: collapse; margin: .8rem 0; } th, td { text-align: left; padding: .25rem .9rem .25rem 0; vertical-align: top; }
th.number { text-align: right; } th { font-weight: 600; border-bottom: 1px solid var(--line); white-space: nowrap; } tbody tr { border-bottom: 1px solid var(--line); }
tbody tr.why { border-bottom: 1px solid var(--line); } tr:has(+ tr.why) { border-bottom: 0; }
.number { text-align: right; } .none { color: var(--faint); } small { color: var(--faint); }
code { font: 12px ui-monospace, monospace; overflow-wrap: anywhere; } time { white-space: nowrap; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .1rem 1rem; margin: 0; } dt { color: var(--faint); } dd { margin: 0; overflow-wrap: anywhere; }
.badge { display: inline-block; border-radius: .6rem; padding: 0 .55rem; font-size: 12px; font-weight: 600; white-space: nowrap; vertical-align: middle; }
.SYNCED { background: #1a7f3733; } .STALE { background: #d4a01755; } .ERROR { background: #cf222e; color: #fff; } .NOT_SENT { background: #8883; }
.slow { color: light-dark(#cf222e, #ff7b72); }
`;
