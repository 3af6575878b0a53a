/** Random inputs of a bootstrap, each of which must end in a clear error or in a bootstrap that Envoy accepts. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import * as E from 'fp-ts/lib/Either.js';
import { agentBootstrap } from '../../src/agent/bootstrap/agent-bootstrap.ts';
import { bootstrapText } from '../../src/agent/bootstrap/prepare-epoch.ts';
import { validationArguments } from '../../src/agent/envoy/envoy-args.ts';
import { validateWithEnvoy } from '../../src/agent/envoy/envoy-validation.ts';
import { resolveProxyOptions } from '../../src/agent/options/proxy-options.ts';
import { withStatsdAddress } from '../../src/agent/options/statsd-address.ts';
import { decodeLenient } from '../../src/model/envoy-api/envoy-api.ts';
import { ChartpilotError, messageOf } from '../../src/runtime/errors.ts';
import { envoyBinary, testFlags } from '../fixtures/real-envoy.ts';
import { type BootstrapInput, bootstrapInput } from './inputs.ts';

export interface RandomBootstraps {
  readonly seed: number;
  readonly inputs: number;
  /** Number of bootstraps that Envoy validates, spread over all inputs. */
  readonly shownToEnvoy: number;
}

export interface RandomBootstrapResult {
  readonly built: number;
  readonly refused: number;
  readonly shown: number;
  /** Errors with the input that reproduces them. */
  readonly findings: readonly string[];
}

export async function runRandomBootstraps({
  seed,
  inputs,
  shownToEnvoy,
}: RandomBootstraps): Promise<RandomBootstrapResult> {
  const folder = mkdtempSync(join(tmpdir(), 'chartpilot-bootstraps-'));
  const findings: string[] = [];
  const counts = { built: 0, refused: 0, shown: 0 };
  try {
    let index = 0;
    for (const input of fc.sample(bootstrapInput, { seed, numRuns: inputs })) {
      index++;
      const finding = (problem: string): void =>
        void findings.push(`${problem}\n  input ${index} of seed ${seed}: ${JSON.stringify(input)}`);
      const outcome = await outcomeOf(input, folder);
      if ('refusal' in outcome) {
        counts.refused++;
        if (outcome.refusal !== undefined) finding(outcome.refusal);
        continue;
      }
      counts.built++;
      const refusal = refusalOf(outcome.text);
      if (refusal !== undefined) finding(refusal);
      // About half of the inputs are rejected.
      if (counts.shown < shownToEnvoy && (index * shownToEnvoy * 2) / inputs >= counts.shown) {
        counts.shown++;
        const refusalText = await refusalOfEnvoy(outcome.text, folder);
        if (refusalText !== undefined) finding(refusalText);
      }
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  return { ...counts, findings };
}

type Outcome = { readonly text: string } | { readonly refusal: string | undefined };

async function outcomeOf(input: BootstrapInput, folder: string): Promise<Outcome> {
  for (const [path, content] of [
    ['etc/istio/config/mesh', input.mesh],
    ['etc/istio/pod/labels', input.labels],
    ['etc/istio/pod/annotations', input.annotations],
    ['logs/readme', ''],
  ] as const) {
    mkdirSync(join(folder, path, '..'), { recursive: true });
    writeFileSync(join(folder, path), content);
  }
  try {
    const { role, env } = input;
    const { outlierLogPath: log } = input.flags;
    // Envoy creates the file if it does not exist.
    const flags =
      log && !log.startsWith('/dev/') ? { ...input.flags, outlierLogPath: join(folder, 'logs', log) } : input.flags;
    const read = resolveProxyOptions({ role, flags, env, directory: folder, assumesMounts: true });
    const options = await withStatsdAddress(read, async (host) => {
      if (host.length % 2 === 0) throw new Error('no such name');
      return { address: host.length % 3 === 0 ? '10.9.9.9' : '2001:db8::9' };
    });
    const order = { adminPort: options.config.proxyAdminPort, run: { epoch: 0, baseId: 0 } };
    return {
      text: bootstrapText(
        agentBootstrap(options, {
          ...order,
          hasCredentialServer: input.hasCredentialServer,
        }).bootstrap,
      ),
    };
  } catch (error) {
    return { refusal: notActionableReason(error) };
  }
}

/** Reason why an error message is not actionable. */
function notActionableReason(error: unknown): string | undefined {
  if (!(error instanceof ChartpilotError)) return `thrown: ${error instanceof Error ? error.stack : messageOf(error)}`;
  if (!['FLAG_INVALID', 'CONFIG_INVALID', 'FILE_UNREADABLE'].includes(error.code)) return `thrown: ${error.message}`;
  return error.message.length > 20_000 ? `an error of ${error.message.length} characters` : undefined;
}

/** Reason why Envoy rejects a text, as far as its API documents it. */
function refusalOf(text: string): string | undefined {
  // An escape is half of a surrogate pair; complete characters are written unescaped.
  if (/(?<!\\)(\\\\)*\\ud[89a-f][0-9a-f]{2}/.test(text)) return 'half of a character is in it';
  try {
    const decoded = decodeLenient('envoy.config.bootstrap.v3.Bootstrap', JSON.parse(text), { keepsTypes: false });
    return E.isLeft(decoded) ? `no Bootstrap: ${decoded.left}` : undefined;
  } catch (error) {
    return `no Bootstrap: ${messageOf(error)}`;
  }
}

async function refusalOfEnvoy(text: string, folder: string): Promise<string | undefined> {
  const file = join(folder, 'bootstrap.json');
  writeFileSync(file, text);
  const result = await validateWithEnvoy({ binary: envoyBinary(), guard: [] }, validationArguments(testFlags, file), {
    signal: new AbortController().signal,
    scratch: [{ path: folder, flag: '--out' }],
  });
  return result.is === 'taken' ? undefined : `Envoy: ${result.why.slice(0, 2_000)}`;
}
