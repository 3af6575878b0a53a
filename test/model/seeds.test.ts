/**
 * The messages of the seeds' diagrams, as the catalogues of events number them: each
 * one that is implemented has a row in a catalogue of events. test/event-catalogue.test.ts checks that the row is in its diagram.
 */
import { describe, expect, test } from 'vitest';
import { eventCatalogue as ofAgent } from '../../machines/agent/event-catalogue.ts';
import { eventCatalogue as ofDiscovery } from '../../machines/discovery/event-catalogue.ts';

/** The numbers from 1 to n. */
const upTo = (n: number): string[] => Array.from({ length: n }, (_, i) => `${i + 1}`);

describe('pilot-agent (seed 000)', () => {
  const rows = ofAgent.filter(({ seeds }) => seeds.length > 0);

  test('has an event for every numbered message of the diagram of seed 000', () => {
    const drawnRows = upTo(22).flatMap((row) => (row === '14' ? ['14a', '14b', '14c'] : [row]));
    expect(new Set(rows.flatMap(({ seeds }) => seeds))).toEqual(new Set(drawnRows.map((row) => `12.1 #${row}`)));
  });
});

describe('pilot-discovery (seed 004)', () => {
  /** Messages of the seeds that this program does not have, with the reason. */
  const absentSeeds: Record<string, string> = {
    '6.8 #4': 'no periodic refresh',
    '6.8 #15': 'no periodic refresh',
    '13.2 #4': 'no live Kubernetes yet',
    '13.1 #3': 'no live Kubernetes yet',
    '13.1 #4': 'no live Kubernetes yet',
    '13.2 #8': 'Mixer is gone',
    '13.2 #10': 'no MCP',
    '13.2 #11': 'no MCP',
    '13.2 #12': 'no MCP',
    '13.2 #18': 'no Ingress yet',
    '13.2 #19': 'no Ingress yet',
    '13.2 #20': 'no Ingress yet',
    '13.2 #31': 'no multicluster yet',
    '13.2 #32': 'no multicluster yet',
  };
  const rows = ofDiscovery.filter(({ seeds }) => seeds.length > 0);

  test('has a message, or a reason for none, for every row of the tables', () => {
    const drawnSeeds = [
      ...upTo(23).map((n) => `6.8 #${n}`),
      ...upTo(11).map((n) => `13.1 #${n}`),
      ...upTo(32).map((n) => `13.2 #${n}`),
    ];
    const covered = new Set<string>(rows.flatMap(({ seeds }) => [...seeds]));
    expect(drawnSeeds.filter((row) => !covered.has(row) && absentSeeds[row] === undefined)).toEqual([]);
    expect(Object.keys(absentSeeds).filter((row) => covered.has(row))).toEqual([]);
  });
});
