import { existsSync } from 'node:fs';
import { relative, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { AnyStateMachine } from 'xstate';
import { ChartpilotError, messageOf } from '../../runtime/errors.ts';
import { packageRoot } from '../../runtime/package-root.ts';
import { ownMachines } from './own-machines.ts';
import { readSamples, type Samples } from './samples.ts';

export interface LoadedMachine {
  readonly machine: AnyStateMachine;
  readonly samples: Samples;
  readonly file: string;
  readonly exportName: string;
  readonly isOwn: boolean;
}

export interface MachineRequest {
  /** The name of a machine of chartpilot, or the path of a module. */
  readonly machine: string;
  readonly export?: string;
  /** Default: `NAME.samples.*` beside the machine's `NAME.machine.*` or `NAME.*`. */
  readonly samples?: string;
}

type Module = Readonly<Record<string, unknown>>;

const extensions = ['.ts', '.mts', '.js', '.mjs'];

/**
 * @throws ChartpilotError FLAG_INVALID if there is no such name, file or export; MACHINE_INVALID if the export is not a
 * machine or the module cannot be loaded
 */
export async function loadMachine(request: MachineRequest): Promise<LoadedMachine> {
  const ownMachine = ownMachines.find(({ name }) => name === request.machine);
  const isFileName = /[./\\]/.test(request.machine);
  if (ownMachine !== undefined && !existsSync(resolve(request.machine))) {
    refuseExport(request);
    const machine = await ownMachine.load();
    const samples = request.samples === undefined ? ownMachine.samples : await loadSamples(resolve(request.samples));
    return {
      machine,
      samples,
      file: resolve(packageRoot(), ownMachine.file),
      exportName: ownMachine.export,
      isOwn: true,
    };
  }
  if (!isFileName) {
    throw new ChartpilotError('FLAG_INVALID', `unknown machine '${request.machine}'`, {
      hint: `machines of chartpilot: ${ownMachines.map(({ name }) => name).join(', ')}; for a module of your own, name its path, such as ./${request.machine}.machine.ts`,
      fields: { path: 'MACHINE', got: request.machine },
    });
  }
  const file = resolve(request.machine);
  if (!existsSync(file)) throw new ChartpilotError('FLAG_INVALID', `no such file: ${file}`, { fields: { path: file } });
  const pickedMachine = pickMachine(await importModule(file), file, request.export);
  return { ...pickedMachine, file, samples: await samplesFor(file, request.samples), isOwn: false };
}

/** @throws ChartpilotError FLAG_INVALID if an export is given for a machine of chartpilot */
export function refuseExport({
  machine,
  export: name,
}: {
  readonly machine: string;
  readonly export?: string | undefined;
}): void {
  if (name === undefined) return;
  throw new ChartpilotError(
    'FLAG_INVALID',
    `--export ${name}: cannot be used with ${machine}, a machine of chartpilot`,
    {
      hint: 'Omit it, or name the path of a module.',
      fields: { path: '--export', got: name },
    },
  );
}

function pickMachine(
  module: Module,
  file: string,
  requestedExport: string | undefined,
): { machine: AnyStateMachine; exportName: string } {
  const machines = Object.entries(module).filter((entry): entry is [string, AnyStateMachine] => isMachine(entry[1]));
  const names = machines.map(([name]) => name);
  const offer = names.length === 0 ? 'the module exports no machine' : `exported machines: ${names.join(', ')}`;
  if (requestedExport !== undefined) {
    if (!(requestedExport in module)) {
      throw new ChartpilotError('FLAG_INVALID', `--export ${requestedExport}: no such export in ${file}; ${offer}`, {
        fields: { path: '--export', expected: names.join(', '), got: requestedExport },
      });
    }
    const machine = module[requestedExport];
    if (isMachine(machine)) return { machine, exportName: requestedExport };
    throw new ChartpilotError(
      'MACHINE_INVALID',
      `export ${requestedExport} of ${file} ${whyNoMachine(machine)}; ${offer}`,
    );
  }
  const chosenMachine =
    machines.find(([name]) => name === 'default') ?? (machines.length === 1 ? machines[0] : undefined);
  if (chosenMachine !== undefined) return { machine: chosenMachine[1], exportName: chosenMachine[0] };
  if (machines.length > 1) {
    throw new ChartpilotError('FLAG_INVALID', `${file} exports several machines: ${names.join(', ')}`, {
      hint: `select one, for example --export ${names[0]}`,
      fields: { path: '--export', expected: names.join(', ') },
    });
  }
  const exportNames = Object.keys(module).join(', ') || 'nothing';
  throw new ChartpilotError('MACHINE_INVALID', `${file}: expected an exported XState machine, got ${exportNames}`, {
    hint: 'export the result of createMachine() or setup().createMachine()',
  });
}

/** The module may use its own copy of XState 5, so the class is not checked. */
function isMachine(value: unknown): value is AnyStateMachine {
  return (
    typeof value === 'object' &&
    value !== null &&
    'getInitialSnapshot' in value &&
    'implementations' in value &&
    'root' in value &&
    'config' in value
  );
}

function whyNoMachine(value: unknown): string {
  if (typeof value !== 'object' || value === null)
    return `is ${value === null ? 'null' : `a ${typeof value}`}, not a machine`;
  if ('transition' in value && 'getInitialSnapshot' in value) return 'is actor logic without states, not a machine';
  return 'initialState' in value ? 'is a machine of XState 4, expected version 5' : 'is not an XState machine';
}

async function samplesFor(machineFile: string, samplesFile: string | undefined): Promise<Samples> {
  if (samplesFile !== undefined) return loadSamples(resolve(samplesFile));
  const baseName = machineFile.replace(/(\.machine)?\.[cm]?[jt]s$/, '');
  const siblingFile = extensions.map((extension) => `${baseName}.samples${extension}`).find((file) => existsSync(file));
  return siblingFile === undefined ? {} : loadSamples(siblingFile);
}

async function loadSamples(file: string): Promise<Samples> {
  if (!existsSync(file))
    throw new ChartpilotError('FLAG_INVALID', `--samples: no such file: ${file}`, {
      fields: { path: '--samples', got: file },
    });
  return readSamples(await importModule(file), relative(process.cwd(), file));
}

async function importModule(file: string): Promise<Module> {
  try {
    return (await import(pathToFileURL(file).href)) as Module;
  } catch (error) {
    throw new ChartpilotError('MACHINE_INVALID', `cannot load ${file}: ${messageOf(error)}`, {
      cause: error,
      ...(/\.[cm]?ts$/.test(file) && {
        hint: 'Node.js strips types only: avoid enums and namespaces, and write extensions in imports',
      }),
    });
  }
}
