/**
 * The catalogues of events are complete: a protocol, its diagrams and its catalogue have the same events. docs/events.md is generated from the
 * catalogues.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { eventCatalogue as ofAgent } from '../machines/agent/event-catalogue.ts';
import type { CatalogueRow } from '../machines/catalogue-row.ts';
import { eventCatalogue as ofDiscovery } from '../machines/discovery/event-catalogue.ts';
import { packageRoot } from '../src/runtime/package-root.ts';
import { arrowsOf } from './harness/diagram-arrows.ts';

const update = process.env.UPDATE_TABLES === '1';
const file = join(import.meta.dirname, '../docs/events.md');

interface Side {
  readonly name: string;
  readonly program: 'agent' | 'discovery';
  readonly protocols: readonly string[];
  readonly catalogue: readonly CatalogueRow[];
  /** Events that an actor sends to itself, which no diagram contains. */
  readonly inner: readonly string[];
}

const sides: readonly Side[] = [
  {
    name: 'pilot-agent',
    program: 'agent',
    protocols: [
      'protocol.ts',
      'access-log-protocol.ts',
      'dns-protocol.ts',
      'grpc-bootstrap-protocol.ts',
      'secrets-protocol.ts',
      'status-protocol.ts',
      'succession-protocol.ts',
      'wasm-protocol.ts',
      'xds-protocol.ts',
    ],
    catalogue: ofAgent,
    inner: ['readiness.responded'],
  },
  {
    name: 'pilot-discovery',
    program: 'discovery',
    protocols: [
      'protocol.ts',
      'xds/ads-protocol.ts',
      'xds/stream-admission-protocol.ts',
      'xds/memory-release-protocol.ts',
      'ca/authority-protocol.ts',
      'ca/shared-authority-protocol.ts',
      'config/xds-source-protocol.ts',
      'kubernetes/kubernetes-protocol.ts',
      'registration/registration-protocol.ts',
      'election/leader-protocol.ts',
      'consul/consul-protocol.ts',
      'port-protocol.ts',
      'names/name-server-protocol.ts',
      'webhooks/webhook-server-protocol.ts',
    ],
    catalogue: ofDiscovery,
    inner: [],
  },
];

const textOf = ({ type, from, to }: CatalogueRow): string => `${from} → ${to}: ${type}`;

/** Comment of each declared event by type. */
function declarationsOf({ program, protocols }: Side): Map<string, string> {
  const commentsByType = new Map<string, string>();
  for (const protocol of protocols) {
    const text = readFileSync(join(packageRoot(), 'machines', program, protocol), 'utf8');
    for (const section of text.split(/^(?=\/\*\*)/m)) {
      const [, comment, declared] = /^\/\*\*(.*?)\*\/\n(export type .*)$/s.exec(section) ?? [];
      for (const [, type] of (declared ?? '').matchAll(/^export type \w+ =\s*\{\s*type: '([^']+)'/gm)) {
        commentsByType.set(
          type!,
          comment!
            .replace(/\s*\n \* ?/g, ' ')
            .replace(/ +/g, ' ')
            .trim(),
        );
      }
    }
  }
  return commentsByType;
}

/** The comment without sender and receiver. */
const meaningOf = (comment: string): string => comment.replace(/^[^.]* → [^.]*\. ?/, '');

/** Events with one meaning in both programs: the debugger shows both on one axis and identifies events by name. */
const sameInBoth = ['files.changed', 'http.failed', 'http.listening', 'signal.received'];

it('an event name has a meaning in only one program unless it is shared', () => {
  const [inAgent, inDiscovery] = [ofAgent, ofDiscovery].map(
    (rows) => new Set(rows.map(({ type }) => type).filter((type) => !/^(spawn|timer) ?/.test(type))),
  );
  expect([...inAgent!].filter((type) => inDiscovery!.has(type)).sort()).toEqual(sameInBoth);
});

describe.each(sides)('the event catalogue of $name', (side) => {
  const { catalogue, inner } = side;
  const diagrams = arrowsOf(side.program);
  const declared = declarationsOf(side);

  it('the catalogue lists every event that its protocol declares', () => {
    const listedTypes = new Set(catalogue.map(({ type }) => type));
    expect([...declared.keys()].filter((type) => !listedTypes.has(type))).toEqual(inner);
  });

  it('the catalogue lists no event that its protocol does not declare', () => {
    const events = [...new Set(catalogue.map(({ type }) => type))].filter((type) => type.includes('.'));
    expect(events.filter((type) => !declared.has(type))).toEqual([]);
  });

  it('the catalogue lists every message of its diagrams', () => {
    const listedArrows = new Set(catalogue.map(textOf));
    const drawnArrows = new Set([...diagrams.values()].flatMap((arrows) => [...arrows]));
    expect([...drawnArrows].filter((arrow) => !listedArrows.has(arrow))).toEqual([]);
  });

  it.each(catalogue.map((row) => [textOf(row), row] as const))(
    'the message %s is in its diagram',
    (text, { diagram }) => {
      expect([...(diagrams.get(diagram) ?? [])]).toContain(text);
    },
  );

  it('the catalogue lists no message twice, except one that represents two messages of the seeds', () => {
    const plain = catalogue.filter(({ seeds }) => seeds.length === 0).map(textOf);
    expect(plain.filter((text, index) => plain.indexOf(text) !== index)).toEqual([]);
  });
});

const introduction = `# Events

All events between two actors: meaning, sender and receiver, and the diagram with their order. \`N\` stands for a number.
\`UPDATE_TABLES=1 vitest run test/event-catalogue.test.ts\` generates this page from \`machines/*/protocol.ts\` and
\`machines/*/event-catalogue.ts\`; a test fails if it is out of date. The catalogues also list records of the runtime (\`spawn\`, \`done\`,
\`timer …\`).
`;

/** One row per event, which may have several senders and receivers. */
function tableOf(side: Side): string {
  const declared = declarationsOf(side);
  const events = [...new Set(side.catalogue.map(({ type }) => type))].filter((type) => declared.has(type)).sort();
  const lines = events.map((type) => {
    const rows = side.catalogue.filter((row) => row.type === type);
    const ways = [...new Set(rows.map(({ from, to }) => `\`${from} → ${to}\``))].join('<br>');
    const drawnDiagrams = [...new Set(rows.map(({ diagram }) => diagram))];
    const links = drawnDiagrams
      .map((diagram) => `[${diagram}](../machines/${side.program}/sequences/${diagram}.mmd)`)
      .join(', ');
    return `| \`${type}\` | ${meaningOf(declared.get(type)!).replaceAll('|', '\\|')} | ${ways} | ${links} |`;
  });
  return [
    `## ${side.name}`,
    '',
    '| event | what it means | from → to | diagram |',
    '| --- | --- | --- | --- |',
    ...lines,
  ].join('\n');
}

describe('docs/events.md', () => {
  it('docs/events.md contains the current catalogues', () => {
    const text = `${[introduction, ...sides.map((side) => `${tableOf(side)}\n`)].join('\n')}`;
    if (update) writeFileSync(file, text);
    expect(existsSync(file) && readFileSync(file, 'utf8') === text, `${file}: run with UPDATE_TABLES=1`).toBe(true);
  });

  it.each(sides)('docs/events.md describes each event of $name', (side) => {
    const undescribedTypes = [...declarationsOf(side)].filter(([, comment]) => meaningOf(comment).length < 5);
    expect(undescribedTypes.map(([type]) => type)).toEqual([]);
  });
});
