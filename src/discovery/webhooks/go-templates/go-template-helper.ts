/** Worker thread of `go-template-thread.ts`. Runs Go's text/template without files, arguments or environment. */
import { openSync } from 'node:fs';
import { devNull } from 'node:os';
import { parentPort, workerData } from 'node:worker_threads';
import type { GoTemplateMessage, GoTemplateWork } from './go-template-thread.ts';
import { instantiate } from './web-assembly.ts';

// Hides Node's warning that WASI is experimental.
process.removeAllListeners('warning');
const { WASI } = process.getBuiltinModule('node:wasi');
const { module } = workerData as GoTemplateWork;
// Discards output: Go prints a stack trace when it runs out of memory, which the template's error already reports.
const nullFile = openSync(devNull, 'w');
const wasi = new WASI({
  // Go packages read the program name.
  ...{ version: 'preview1', args: ['go-templates'], env: {}, preopens: {} },
  ...{ stdout: nullFile, stderr: nullFile },
});
const instance = await instantiate(module, wasi.getImportObject());
wasi.initialize(instance);
const { memory, reserve, render } = instance.exports;

parentPort!.on('message', (request: string) => {
  const input = Buffer.from(request);
  const address = reserve(input.length);
  new Uint8Array(memory.buffer, address, input.length).set(input);
  const outputLocation = BigInt.asUintN(64, render());
  const output = Buffer.from(
    memory.buffer,
    Number(outputLocation >> 32n),
    Number(outputLocation & 0xffff_ffffn),
  ).toString('utf8');
  parentPort!.postMessage(JSON.parse(output) satisfies GoTemplateMessage);
});
parentPort!.postMessage({ ready: true } satisfies GoTemplateMessage);
