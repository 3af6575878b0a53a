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
  test('a call tree includes callees in their caller, merges equal calls and omits idle time', () => {
    expect(tree.totalUs).toBe(10_000);
    expect(tree.calls.map(({ name, totalUs }) => [name, totalUs])).toEqual([
      ['serve', 6_000],
      ['a<b>', 4_000],
    ]);
    expect(tree.calls[0]!.calls.map(({ name, totalUs }) => [name, totalUs])).toEqual([['write', 5_000]]);
  });

  test('a call tree contains no paths of the build machine', () => {
    expect(shortPlace('/home/me/chartpilot/src/model/x.ts')).toBe('src/model/x.ts');
    expect(shortPlace('../../node_modules/@grpc/grpc-js/build/src/server.js')).toBe('@grpc/grpc-js');
  });
});

describe('a flame graph', () => {
  const svg = drawFlameGraph(tree, { title: 'a & b' });

  test('a flame graph has a box for each call with its share as width, its name and its time', () => {
    expect(svg.match(/<g>/g)).toHaveLength(4);
    expect(svg).toContain('<title>serve (src/discovery/xds/x.ts): 6.0 ms, 60.0 %</title>');
    expect(svg).toMatch(/<title>serve [^/]*\/[^"]*<rect x="10.0" y="61" width="707.5"/);
  });

  test('a flame graph is well-formed XML without scripts', () => {
    expect(svg).toContain('a &amp; b');
    expect(svg).toContain('a&lt;b&gt;');
    expect(svg).not.toContain('<script');
  });

  test('a flame graph omits calls that are too small to see', () => {
    expect(drawFlameGraph(tree, { title: '', minShare: 0.55 }).match(/<g>/g)).toHaveLength(2);
  });
});
