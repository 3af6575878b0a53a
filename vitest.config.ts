import { join } from 'node:path';
import { defineConfig } from 'vitest/config';
import { BaseSequencer, type Reporter, type TestModule, type TestSpecification } from 'vitest/node';

/** The last line of a run, alone on its line: what .ci/run ends with. */
const closingLine: Reporter = {
  onTestRunEnd(modules: readonly TestModule[]) {
    const count = { passed: 0, failed: 0, skipped: 0 };
    for (const module of modules) {
      // A file that does not load, or whose last check fails, has no test to fail for it.
      if (module.state() === 'failed' && module.errors().length > 0) count.failed++;
      for (const test of module.children.allTests()) {
        const state = test.result().state;
        count[state === 'passed' || state === 'failed' ? state : 'skipped']++;
      }
    }
    console.log(`${count.passed} passed, ${count.failed} failed, ${count.skipped} skipped`);
  },
};

/**
 * A file that begins last and takes a minute is waited for alone; a clone knows of no earlier run. By the seconds that each took of
 * a clock, which is what it keeps a process for.
 */
const longest = [
  'test/e2e/debugger-accessible',
  'test/e2e/root-rotation',
  'test/e2e/tarball',
  'test/e2e/debugger-hands',
  'test/e2e/hostile-sinks',
  'test/e2e/debugger-live',
  'test/e2e/churn',
  'test/e2e/debugger-layout',
  'test/e2e/mistakes',
  'test/e2e/stand-in',
  'test/e2e/generated',
  'test/e2e/debugger-security',
  'test/e2e/foreign-client',
  'test/e2e/fuzz',
  'test/e2e/calibration',
  'test/e2e/random-config',
  'test/e2e/istio-iptables',
  'test/e2e/debugger-causes',
  'test/e2e/debugger-export',
  'test/e2e/first-process',
  'test/e2e/debugger-firefox',
  'test/e2e/features/restrictions',
  'test/e2e/secrets',
  'test/e2e/debugger-page',
  'test/e2e/debugger-views',
  'test/e2e/features/gateway-tls',
  'test/e2e/features/destination-rule',
  'test/e2e/envoy-accepts',
  'test/e2e/debugger-case',
  'test/e2e/container',
  'test/e2e/reconnect',
  'test/e2e/features/gateway-api',
  'test/e2e/features/request-handling',
  'test/e2e/replay',
  'test/e2e/features/listener-binding',
  'test/e2e/refused-certificate',
  'test/e2e/features/telemetry',
  'test/e2e/envoy-crashing-values',
  'test/e2e/trace-secrets',
  'test/load/hostile-clients',
  'test/e2e/envoy-replaced',
  'test/load/returning-nodes',
  'test/e2e/crash',
  'test/e2e/hot-restart',
  'test/e2e/second-base-id',
  'test/e2e/weights',
  'test/e2e/control-plane-away',
  'test/e2e/debugger-large',
  'test/model/explore',
  'test/model/explore-discovery',
  'src/discovery/push/incremental.property',
  'src/agent/agent-system',
  'test/model/random-faults',
  'src/debugger/generate/generate-command',
  'src/discovery/authority/roots-for-agents',
  'src/cli/output',
  'test/model/agent/secrets',
  'src/debugger/statechart/layout',
  'test/lint',
];

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const place = ({ moduleId }: TestSpecification): number => {
      const found = longest.findIndex((name) => moduleId.includes(`/${name}.`));
      return found < 0 ? longest.length : found;
    };
    // Projects keep their order: what is not to run beside others does not.
    const sorted = await super.sort(files);
    const projects = [...new Set(sorted.map(({ project }) => project))];
    return projects.flatMap((project) =>
      sorted.filter((file) => file.project === project).sort((one, other) => place(one) - place(other)),
    );
  }
}

/** A file says in its name what it asks of its surroundings (test/README.md); the others share a process. */
const alone = '**/*.alone.test.ts';
const timed = '**/*.timed.test.ts';
const measured = '**/*.measured.test.ts';
const lint = 'test/clean-tree.test.ts';
const withEnvoy = { testTimeout: 180_000, hookTimeout: 120_000 };

export default defineConfig({
  // XState's development build warns of events sent to stopped actors and of mistakes in a machine's configuration.
  ssr: { resolve: { conditions: ['development'] } },
  test: {
    reporters: ['default', closingLine],
    // For machines that do other things as well: none takes a tenth of that alone.
    testTimeout: 60_000,
    hookTimeout: 60_000,
    setupFiles: ['test/harness/setup-cpu.ts'],
    // Hundreds of programs are started from their sources: to strip their types and compile them took half of that time.
    env: { NODE_COMPILE_CACHE: join(import.meta.dirname, 'node_modules/.cache/node') },
    sequence: { sequencer: LongestFirst },
    projects: [
      {
        extends: true,
        test: {
          name: 'lint',
          include: [lint],
          maxWorkers: 3,
          testTimeout: 300_000,
          sequence: { groupOrder: 1 },
        },
      },
      {
        extends: true,
        test: { name: 'alone', include: [alone], maxWorkers: 3, sequence: { groupOrder: 1 } },
      },
      {
        extends: true,
        // Three processes take all files: to begin one for each file took as long as the tests, and with two a core was idle
        // while both waited, for half of the time that their files take. A file leaves everything as it found it, which
        // `setup-shared.ts` watches.
        test: {
          name: 'unit',
          include: ['{machines,src,test,visualize}/**/*.test.ts'],
          exclude: ['test/e2e/**', alone, timed, measured, lint],
          isolate: false,
          setupFiles: ['test/harness/setup-shared.ts'],
          maxWorkers: 3,
          sequence: { groupOrder: 1 },
        },
      },
      {
        extends: true,
        // Most of their time they wait for an Envoy, a file, a page: five files take two processors. Ports, folders and base
        // ids are each test's own. To begin a process for a file takes as long as to start four Envoys: they share five.
        test: {
          name: 'e2e',
          include: ['test/e2e/**/*.test.ts'],
          exclude: [alone, timed, measured],
          isolate: false,
          setupFiles: ['test/harness/setup-shared.ts'],
          maxWorkers: 5,
          ...withEnvoy,
          sequence: { groupOrder: 2 },
        },
      },
      {
        extends: true,
        // Seconds are judged there, or requests under load: with four at once, a crash was not over in its second. They wait
        // for more than half of their time, or are judged by the time of a processor.
        test: {
          name: 'timed',
          include: [timed],
          isolate: false,
          setupFiles: ['test/harness/setup-shared.ts'],
          maxWorkers: 3,
          ...withEnvoy,
          sequence: { groupOrder: 3 },
        },
      },
      {
        extends: true,
        // What a person sees has its time in milliseconds: nothing else runs meanwhile.
        test: {
          name: 'measured',
          include: [measured],
          maxWorkers: 1,
          ...withEnvoy,
          sequence: { groupOrder: 4 },
        },
      },
    ],
  },
});
