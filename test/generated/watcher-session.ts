/** Tests of the certificate watcher's machine: its effects are scripted, or the agent's effects on real files. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type AnyActorRef, fromCallback, fromPromise } from 'xstate';
import { certWatcherMachine } from '../../machines/agent/files/cert-watcher.machine.ts';
import { directoryWatchMachine } from '../../machines/agent/files/directory-watch.machine.ts';
import { defaultSettings } from '../../machines/agent/settings.ts';
import { type CertificateFilesContent, digestDirectories } from '../../src/agent/files/certificate-files.ts';
import { watchDirectory } from '../../src/agent/files/directory-watch.effects.ts';
import { scriptedPromise, settleCall } from '../../src/debugger/explore/scripted-effect.ts';
import { type GeneratedTest, type Step, stepLabel } from '../../src/debugger/generate/suite.ts';
import { createServerCertificates, renewServerCertificate } from '../certs/issued-certificates.ts';
import { type Driver, StepNotPossible } from './driver.ts';
import { Company, type StepTriggers, sessionOf } from './session.ts';

/** A change is noticed within milliseconds. */
const limit = { ms: 2_000 };

/** The files of a session. */
interface Files {
  readonly machine: typeof certWatcherMachine;
  readonly directories: string[];
  /** Sets the result of the next read. */
  setNextRead(read: Step, company: Company): Promise<void>;
  /** Completes a wait or a read, both of which wait for an order of the test. */
  settle(step: Step, company: Company): void;
  change(step: Step & { kind: 'event' }, company: Company): Promise<void>;
  close(): Promise<void>;
}

export const watcherWithScriptedFiles = driver('scripted effects', async () => ({
  machine: certWatcherMachine.provide({
    actors: {
      waitForFiles: fromCallback(() => {}),
      digestFiles: scriptedPromise(() => {}),
    },
  }),
  directories: [],
  setNextRead: async () => {},
  settle(step, { machine }) {
    if (step.kind !== 'done' && step.kind !== 'error') return;
    const effect = machine.getSnapshot().children[step.effect] as AnyActorRef | undefined;
    if (effect === undefined) throw new Error(`${step.effect} does not run`);
    settleCall(effect, step.kind === 'done' ? { value: step.output } : { error: new Error(step.message) });
  },
  change: async ({ event }, { machine }) => machine.send(event),
  close: async () => {},
}));

const hangs = (labels: readonly string[]): string | undefined =>
  labels.includes('after readingLimit') ? 'no file system here hangs' : undefined;

export const watcherWithRealFiles = driver('real files', realFiles, hangs);

async function realFiles(): Promise<Files> {
  const folder = await mkdtemp(join(tmpdir(), 'chartpilot-watched-'));
  const certificates = createServerCertificates(folder, ['sample.localhost']);
  const key = join(certificates.directory, 'tls.key');
  const heldReads: (() => void)[] = [];
  /** Result of Envoy's validation at the next read. Envoy does not run here; only its failure is scripted. */
  let notValidated: string | undefined;
  const waitForRead = (): Promise<void> => new Promise((resolve) => void heldReads.push(resolve));
  return {
    machine: certWatcherMachine.provide({
      actors: {
        // The test reports the result itself.
        waitForFiles: fromCallback(() => {}),
        digestFiles: fromPromise<CertificateFilesContent, { directories: string[]; judge: boolean }>(
          async ({ input }) => {
            await waitForRead();
            const { digest, files, problems } = await digestDirectories(input.directories);
            return { digest, files, problems, ...(notValidated !== undefined && { notValidated }) };
          },
        ),
        directory: directoryWatchMachine.provide({ actors: { watchDirectory: watchDirectory() } }),
      },
    }),
    directories: [certificates.directory],
    async setNextRead(read, company) {
      if (read.kind !== 'done') return;
      const reading = read.output as CertificateFilesContent;
      notValidated = reading.notValidated;
      if (reading.problems.length === 0) return;
      await writeFile(key, 'no key');
      // The watch reports this write as another change, which is merged into the current batch.
      await company.occurrences.next(limit);
    },
    settle(step) {
      if (step.kind === 'error') throw new StepNotPossible('what cannot be read counts as empty');
      heldReads.shift()?.();
    },
    change: async () => void renewServerCertificate(certificates),
    close: () => rm(folder, { recursive: true, force: true }),
  };
}

function driver(
  name: string,
  openFiles: () => Promise<Files>,
  cannot: (labels: readonly string[]) => string | undefined = () => undefined,
): Driver {
  return {
    name,
    cannot: ({ steps }) => cannot(steps.map((testStep) => stepLabel(testStep.do))),
    async begin(test: GeneratedTest) {
      const files = await openFiles();
      const input = { ...defaultSettings.watch, directories: files.directories };
      const company = new Company(files.machine, 'cert-watcher', input, ['supervisor']);
      return sessionOf(company, test, waysOf(company, files));
    },
  };
}

function waysOf(company: Company, files: Files): StepTriggers {
  return {
    limit,
    async trigger(step, laterSteps) {
      const readStep = laterSteps.find((next) => 'effect' in next);
      // The next read begins in this step.
      if (
        readStep !== undefined &&
        readStep === laterSteps[0] &&
        'effect' in readStep &&
        readStep.effect === 'digest'
      ) {
        await files.setNextRead(readStep, company);
      }
      if (step.kind === 'delay') return company.pass(step.ms);
      if (step.kind !== 'event') return files.settle(step, company);
      if (step.event.type === 'files.changed') return files.change(step, company);
      company.machine.send(step.event);
    },
    // A change of several files is reported more than once.
    ignores: ({ type, state }) => type === 'files.changed' && state === undefined,
    end: () => files.close(),
  };
}
