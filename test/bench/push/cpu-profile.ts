/** A V8 CPU profile as a tree of calls, with function names of the sources. Pure, except {@link sourceNames}. */
import { existsSync, readFileSync } from 'node:fs';
import { SourceMap } from 'node:module';
import { fileURLToPath } from 'node:url';

/** Result of `Profiler.stop` and `--cpu-prof` (times in microseconds, lines and columns from 0). */
export interface CpuProfile {
  readonly nodes: readonly {
    readonly id: number;
    readonly callFrame: CallFrame;
    readonly children?: readonly number[];
  }[];
  readonly samples: readonly number[];
  readonly timeDeltas: readonly number[];
}

export interface CallFrame {
  readonly functionName: string;
  readonly url: string;
  readonly lineNumber: number;
  readonly columnNumber: number;
}

export interface ProfiledCall {
  readonly name: string;
  /** File of the function as `src/…`, `node:…` or a package name; empty for functions of the engine. */
  readonly place: string;
  /** Includes all callees. */
  totalUs: number;
  readonly calls: ProfiledCall[];
}

/** @param nameOf name and place of a function; calls that are equal in both under one caller are merged */
export function callTree(
  profile: CpuProfile,
  nameOf: (frame: CallFrame) => { name: string; place: string },
): ProfiledCall {
  const ownUs = new Map<number, number>();
  profile.samples.forEach((id, i) => {
    ownUs.set(id, (ownUs.get(id) ?? 0) + (profile.timeDeltas[i] ?? 0));
  });
  const nodesById = new Map(profile.nodes.map((node) => [node.id, node]));
  const root: ProfiledCall = { name: 'all', place: '', totalUs: 0, calls: [] };
  const add = (id: number, caller: ProfiledCall): number => {
    const node = nodesById.get(id);
    if (node === undefined || node.callFrame.functionName === '(idle)') return 0;
    const { name, place } = nameOf(node.callFrame);
    let call = caller.calls.find((candidate) => candidate.name === name && candidate.place === place);
    if (call === undefined) {
      call = { name, place, totalUs: 0, calls: [] };
      caller.calls.push(call);
    }
    const nodeTotalUs = (ownUs.get(id) ?? 0) + (node.children ?? []).reduce((sum, child) => sum + add(child, call), 0);
    call.totalUs += nodeTotalUs;
    return nodeTotalUs;
  };
  root.totalUs = (profile.nodes[0]?.children ?? []).reduce((sum, id) => sum + add(id, root), 0);
  return root;
}

/** Names functions by the sources of a bundle, with the source maps next to it. */
export function sourceNames(): (frame: CallFrame) => { name: string; place: string } {
  const maps = new Map<string, SourceMap | undefined>();
  return ({ functionName, url, lineNumber, columnNumber }) => {
    const name = functionName || '(anonymous)';
    if (!url.startsWith('file:')) return { name, place: url };
    if (!maps.has(url)) maps.set(url, readSourceMap(`${fileURLToPath(url)}.map`));
    const entry = maps.get(url)?.findEntry(lineNumber, columnNumber);
    const source = entry !== undefined && 'originalSource' in entry ? entry.originalSource : url;
    return { name, place: shortPlace(source) };
  };
}

/** `src/…`, `machines/…` or the package name, without paths of the build machine. */
export function shortPlace(source: string): string {
  const inPackage = /.*node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(source);
  return inPackage?.[1] ?? /(?:^|\/)((?:src|machines)\/.*)$/.exec(source)?.[1] ?? source.replace(/.*\//, '');
}

function readSourceMap(file: string): SourceMap | undefined {
  return existsSync(file) ? new SourceMap(JSON.parse(readFileSync(file, 'utf8'))) : undefined;
}
