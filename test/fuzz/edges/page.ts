/** The debugger's page server, with a trace. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Program } from '../../harness/program.ts';
import type { Draw } from '../../random-config/draw.ts';
import { abbreviate, type FuzzSubject, type SubjectMaker } from '../edge.ts';
import { httpRequest } from '../grammar/http.ts';
import { ProgramWatch } from './program-watch.ts';
import { recordedTrace } from './recorded-trace.ts';
import { throwBytes } from './throw-bytes.ts';

export const pageMaker: SubjectMaker = {
  program: 'chartpilot',
  name: 'chartpilot visualize',
  edges: ['page-http'],
  batch: 20,
  open: openPage,
};

async function openPage(): Promise<FuzzSubject> {
  const folder = mkdtempSync(join(tmpdir(), 'chartpilot-fuzz-'));
  const file = join(folder, 'a.trace');
  writeFileSync(file, `${(await recordedTrace()).join('\n')}\n`);
  const program = Program.start('chartpilot', { args: ['visualize', file], env: process.env, cwd: folder });
  const line = await program.line(/http:\/\/[^ ]+/);
  const url = /http:\/\/[^ ]+/.exec(line)![0];
  const port = Number(new URL(url).port);
  const secret = new URL(url).pathname;
  const watch = new ProgramWatch(program, { maxResidentMiB: 400, maxResponseMs: 20_000 });
  const paths = [
    '/',
    secret,
    `${secret}sources`,
    `${secret}main.js`,
    `${secret}sources/0/records`,
    `${secret}diagrams`,
  ];
  const attack = async (draw: Draw): Promise<string> => {
    const bytes = httpRequest(draw, { paths });
    await throwBytes(port, bytes, draw);
    return abbreviate(bytes);
  };
  return {
    edges: [{ name: 'page-http', program: 'chartpilot', attack }],
    findProblems: () => watch.findProblems(url),
    async close() {
      await program.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
