/** Generates the suites of this folder from the current machines. */
import { generate } from '../../src/debugger/generate/generate.ts';
import { ownMachines } from '../../src/debugger/generate/own-machines.ts';
import type { Suite } from '../../src/debugger/generate/suite.ts';
import { sized } from '../harness/size-of-run.ts';

type Name = 'supervisor' | 'restart' | 'shutdown' | 'epoch' | 'cert-watcher';

/**
 * The short run has nine of ten tests of the supervisor's machine for a quarter of the CPU time; the full run has all.
 */
const limit = sized({ short: 300, full: 800 });
const suiteCache = new Map<Name, Promise<Suite>>();

/** Transition-covering tests of a machine of this project; generated once per test file. */
export function suiteOf(name: Name): Promise<Suite> {
  const suite = suiteCache.get(name) ?? createSuite(name);
  suiteCache.set(name, suite);
  return suite;
}

async function createSuite(name: Name): Promise<Suite> {
  const ownMachine = ownMachines.find((machine) => machine.name === name);
  if (ownMachine === undefined) throw new Error(`no machine is named ${name}`);
  const options = { cover: 'transitions', limit, depth: 30 } as const;
  return generate(await ownMachine.load(), ownMachine.samples, options, {
    source: ownMachine.file,
    export: ownMachine.export,
  });
}
