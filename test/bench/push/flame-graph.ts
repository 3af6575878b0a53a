/** A flame graph as an SVG without scripts: callers above callees, with CPU time as width. Pure. */
import type { ProfiledCall } from './cpu-profile.ts';

export interface FlameOptions {
  readonly title: string;
  /** Calls with a smaller share of the total time are omitted. */
  readonly minShare?: number;
}

const width = 1_200;
const rowHeight = 17;
const headHeight = 44;
const margin = 10;
const characterWidth = 6.1;

/** Areas of the program with their colours; the first match applies. */
const areas: readonly {
  readonly name: string;
  readonly color: string;
  readonly holds: (call: ProfiledCall) => boolean;
}[] = [
  { name: 'streams', color: '#f4a261', holds: ({ place }) => place.startsWith('src/discovery/xds') },
  {
    name: 'generation and cache',
    color: '#e9c46a',
    holds: ({ place }) => /^src\/(networking|discovery\/push)/.test(place),
  },
  { name: 'model and sources', color: '#a7c957', holds: ({ place }) => place.startsWith('src/') },
  { name: 'statecharts', color: '#90caf9', holds: ({ place }) => /^(machines\/|xstate)/.test(place) },
  { name: 'garbage collection', color: '#e57373', holds: ({ name }) => name === '(garbage collector)' },
  { name: 'packages', color: '#ce93d8', holds: ({ place }) => place !== '' && !place.startsWith('node:') },
  { name: 'Node', color: '#cfd8dc', holds: () => true },
];

export function drawFlameGraph(root: ProfiledCall, { title, minShare = 0.004 }: FlameOptions): string {
  const boxes: string[] = [];
  let depth = 0;
  const scale = (width - 2 * margin) / Math.max(1, root.totalUs);
  const draw = (call: ProfiledCall, x: number, row: number): void => {
    depth = Math.max(depth, row + 1);
    boxes.push(box(call, { x, row, width: call.totalUs * scale, share: call.totalUs / root.totalUs }));
    let at = x;
    for (const inner of call.calls.toSorted((a, b) => b.totalUs - a.totalUs)) {
      if (inner.totalUs < minShare * root.totalUs) continue;
      draw(inner, at, row + 1);
      at += inner.totalUs * scale;
    }
  };
  draw(root, margin, 0);
  const height = headHeight + depth * rowHeight + margin;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" font-family="monospace" font-size="10.5">`,
    `<title>${escapeXml(title)}</title>`,
    `<rect width="${width}" height="${height}" fill="#ffffff"/>`,
    `<text x="${margin}" y="17" font-size="13">${escapeXml(title)}</text>`,
    ...legend(),
    ...boxes,
    '</svg>',
    '',
  ].join('\n');
}

function box(
  { name, place, totalUs, ...call }: ProfiledCall,
  at: { readonly x: number; readonly row: number; readonly width: number; readonly share: number },
): string {
  const { color } = areas.find(({ holds }) => holds({ name, place, totalUs, ...call }))!;
  const y = headHeight + at.row * rowHeight;
  const tip = `${name}${place === '' ? '' : ` (${place})`}: ${(totalUs / 1_000).toFixed(1)} ms, ${(at.share * 100).toFixed(1)} %`;
  const maxCharacters = Math.floor((at.width - 6) / characterWidth);
  const text = maxCharacters < 4 ? '' : name.length <= maxCharacters ? name : `${name.slice(0, maxCharacters - 1)}…`;
  const label = text === '' ? '' : `<text x="${(at.x + 3).toFixed(1)}" y="${y + 12}">${escapeXml(text)}</text>`;
  return (
    `<g><title>${escapeXml(tip)}</title><rect x="${at.x.toFixed(1)}" y="${y}" width="${Math.max(0.3, at.width - 0.5).toFixed(1)}" ` +
    `height="${rowHeight - 1}" fill="${color}"/>${label}</g>`
  );
}

function legend(): string[] {
  let x = margin;
  return areas.map(({ name, color }) => {
    const item = `<rect x="${x}" y="25" width="10" height="10" fill="${color}"/><text x="${x + 14}" y="34">${name}</text>`;
    x += 30 + name.length * 6.5;
    return item;
  });
}

const escapeXml = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');
