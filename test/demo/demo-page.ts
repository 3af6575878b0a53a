/** The debugger's page of the demo: live traces of all programs. */
import type { Session, Source } from '../../src/debugger/page-data.ts';
import { liveSource } from '../../src/debugger/visualize/live-source.ts';
import { type PageServer, startPageServer } from '../../src/debugger/visualize/page-server.ts';
import { messageOf } from '../../src/runtime/errors.ts';
import type { Mesh } from '../harness/mesh.ts';
import type { CheckFinding } from './findings.ts';

/** Serves the page in this process. The gateway comes first, because the demo suggests restarts of it. */
export function startDemoPage(mesh: Mesh): Promise<PageServer> {
  const programs = [
    { name: 'gateway', port: mesh.gateway!.statusPort },
    { name: 'sidecar of v1', port: mesh.sidecar!.statusPort },
    { name: 'control plane', port: mesh.discovery!.monitoringPort },
  ];
  return startPageServer({
    sources: programs.map(({ name, port }) => liveSource({ host: '127.0.0.1', port }, { name })),
  });
}

/** Sends the requests of a browser to the page. */
export function pageFinding({ address }: PageServer): Promise<CheckFinding> {
  return pageFindingOf(address);
}

/** @param address of the page, with a trailing slash */
export async function pageFindingOf(address: string): Promise<CheckFinding> {
  const expected = 'the page and three live traces with their charts';
  try {
    const liveTraces = await loadPage(address);
    return {
      check: "the debugger's page",
      seen: `${liveTraces.length} live traces`,
      expected,
      ok: liveTraces.length === 3,
    };
  } catch (error) {
    return { check: "the debugger's page", seen: 'an error', expected, ok: false, detail: messageOf(error) };
  }
}

/** @returns the program of each trace */
async function loadPage(address: string): Promise<string[]> {
  const page = await (await fetchOk(address)).text();
  if (!page.includes('page.js')) throw new Error(`what is at ${address} is not the page`);
  const sources = (await (await fetchOk(`${address}sources.json`)).json()) as Source[];
  const programs: string[] = [];
  for (const [number, { name }] of sources.entries()) {
    const { charts, diagrams } = (await (await fetchOk(`${address}session/${number}.json`)).json()) as Session;
    if (Object.keys(charts).length === 0 || diagrams.length === 0)
      throw new Error(`${name} has no charts or no diagrams`);
    programs.push(await firstProgram(`${address}trace/${number}`));
  }
  return programs;
}

async function fetchOk(address: string): Promise<Response> {
  const response = await fetch(address, { signal: AbortSignal.timeout(10_000) });
  if (!response.ok)
    throw new Error(
      `${new URL(address).pathname.split('/').at(-1)}: status ${response.status} ${await response.text()}`,
    );
  return response;
}

/** Reads the program name in the first line of a trace and closes the stream. */
async function firstProgram(address: string): Promise<string> {
  const { body } = await fetchOk(address);
  let text = '';
  for await (const chunk of body!.pipeThrough(new TextDecoderStream())) {
    text += chunk;
    if (text.includes('\n')) return (JSON.parse(text.slice(0, text.indexOf('\n'))) as { program: string }).program;
  }
  throw new Error('a trace has no first line');
}
