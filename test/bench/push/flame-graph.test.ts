import { describe, expect, test } from 'vitest';
import { type CpuProfile, callTree, shortPlace } from './cpu-profile.ts';
import { drawFlameGraph } from './flame-graph.ts';

const frame = (functionName: string) => ({
  functionName,
  url: 'src/discovery/xds/x.ts',
  lineNumber: 1,
  columnNumber: 1,
});
const profile: CpuProfile = {
  nodes: [
    { id: 1, callFrame: frame('(root)'), children: [2, 3, 6] },
    { id: 2, callFrame: frame('(idle)') },
    { id: 3, callFrame: frame('serve'), children: [4, 5] },
    { id: 4, callFrame: frame('write') },
    { id: 5, callFrame: frame('write') },
    { id: 6, callFrame: frame('a<b>') },
  ],
  samples: [2, 3, 4, 5, 6],
  timeDeltas: [1_000_000, 1_000, 2_000, 3_000, 4_000],
};
const tree = callTree(profile, ({ functionName, url }) => ({ name: functionName, place: url }));

describe('a tree of calls', () => {
  test('has the time of what was called in its caller, equal calls as one, and no idle time', () => {
    expect(tree.totalUs).toBe(10_000);
    expect(tree.calls.map(({ name, totalUs }) => [name, totalUs])).toEqual([
      ['serve', 6_000],
      ['a<b>', 4_000],
    ]);
    expect(tree.calls[0]!.calls.map(({ name, totalUs }) => [name, totalUs])).toEqual([['write', 5_000]]);
  });

  test('says nothing of the machine it was made on', () => {
    expect(shortPlace('/home/me/chartpilot/src/model/x.ts')).toBe('src/model/x.ts');
    expect(shortPlace('../../node_modules/@grpc/grpc-js/build/src/server.js')).toBe('@grpc/grpc-js');
  });
});

describe('a flame graph', () => {
  const svg = drawFlameGraph(tree, { title: 'a & b' });

  test('has a box for each call, as wide as its share, with its name and time', () => {
    expect(svg.match(/<g>/g)).toHaveLength(4);
    expect(svg).toContain('<title>serve (src/discovery/xds/x.ts): 6.0 ms, 60.0 %</title>');
    expect(svg).toMatch(/<title>serve [^/]*\/[^"]*<rect x="10.0" y="61" width="707.5"/);
  });

  test('is a text of XML without scripts', () => {
    expect(svg).toContain('a &amp; b');
    expect(svg).toContain('a&lt;b&gt;');
    expect(svg).not.toContain('<script');
  });

  test('leaves out what is too small to see', () => {
    expect(drawFlameGraph(tree, { title: '', leastShare: 0.55 }).match(/<g>/g)).toHaveLength(2);
  });
});
