import { ChartpilotError } from '../runtime/errors.ts';
import type { Logger } from '../runtime/output/log.ts';
import { type Interception, type IpFamily, ipFamilies } from './interception.ts';
import type { InterceptionOrder } from './interception-settings.ts';
import { remainingRoutes, removePassthroughAddress, removeRoutes } from './ip-routes.ts';
import { presentNftMarks, presentNftTables, removeNftTables } from './nft-tables.ts';
import {
  isPresent,
  type NamedRedirection,
  type PresentRedirection,
  presentRedirection,
} from './present-redirection.ts';
import { removalText } from './removal.ts';
import { programOf } from './rule-list.ts';
import {
  type CommandResult,
  commandError,
  isNotInstalled,
  requireNetAdmin,
  run,
  runOrThrow,
  withNetworkNamespace,
} from './run-command.ts';
import { parseSavedRules, type SavedRules } from './saved-rules.ts';

export interface Terminal {
  readonly print: (text: string) => void;
  readonly log: Logger['info'];
}

type RemovalTarget = Pick<InterceptionOrder, 'interception' | 'networkNamespace'>;

/** @throws ChartpilotError IPTABLES_FAILED if rules cannot be read; REDIRECTION_REMAINS with the remaining rules */
export async function removeInterception(order: InterceptionOrder, { print, log }: Terminal): Promise<void> {
  if (order.dryRun) {
    print(await removalPlan(order));
    return;
  }
  requireNetAdmin();
  const presentState = await presentIn(order);
  const errors = await removePresent(order, presentState);
  await removePassthroughAddress(order.networkNamespace);
  const stateAfter = await presentIn(order);
  const remainingParts = [
    ...descriptionOf(stateAfter),
    ...(await remainingRoutes(presentState.marks, order.networkNamespace)),
  ];
  if (remainingParts.length > 0) {
    throw new ChartpilotError('REDIRECTION_REMAINS', [...remainingParts, ...errors].join('\n'), {
      hint: 'Remove the rules of other programs that jump to these chains, then run `pilot-agent istio-clean-iptables` again.',
    });
  }
  const removedParts = descriptionOf(presentState);
  if (removedParts.length === 0) log('redirection.absent');
  else log('redirection.removed', { removed: removedParts.join('\n') });
}

export interface PresentState {
  readonly families: Readonly<Record<IpFamily, PresentRedirection>>;
  readonly nftTables: readonly string[];
  readonly marks: readonly number[];
}

/** @throws ChartpilotError IPTABLES_FAILED if the rules cannot be read */
export async function presentIn(target: RemovalTarget): Promise<PresentState> {
  const nftTables = await presentNftTables(target.networkNamespace);
  const [v4, v6] = await Promise.all(
    ipFamilies.map(async (family) =>
      presentRedirection(await savedRules(target, family), namedRedirectionOf(target.interception)),
    ),
  );
  const nftMarks = await presentNftMarks(nftTables, target.networkNamespace);
  return { families: { v4: v4!, v6: v6! }, nftTables, marks: [...v4!.tproxyMarks, ...v6!.tproxyMarks, ...nftMarks] };
}

export function isRedirected({ families }: PresentState): boolean {
  return ipFamilies.some((family) => isPresent(families[family]));
}

function namedRedirectionOf(interception: Interception): NamedRedirection {
  const { excludeInterfaces: excludedInterfaces, kubevirtInterfaces, generation, tproxyMark } = interception;
  const dropInvalid = interception.dropInvalid && generation === 'g3';
  return { tproxyMark, unrecorded: { excludedInterfaces, kubevirtInterfaces, dropInvalid } };
}

/**
 * Empty without IPv6 in the kernel, or without the iptables program of the family.
 *
 * @throws ChartpilotError IPTABLES_FAILED if the rules of IPv4 cannot be read
 */
export async function savedRules(target: RemovalTarget, family: IpFamily): Promise<SavedRules> {
  return parseSavedRules(await savedText(target, family));
}

export async function savedText({ networkNamespace }: RemovalTarget, family: IpFamily): Promise<string> {
  const command = withNetworkNamespace(networkNamespace, { program: `${programOf(family)}-save`, args: [] });
  const commandResult = await run(command);
  if (commandResult.exitCode === 0) return commandResult.stdout;
  if (family === 'v6' || (isNotInstalled(commandResult) && (await hasNft(networkNamespace)))) return '';
  throw commandError(command, commandResult);
}

async function hasNft(networkNamespace: string | undefined): Promise<boolean> {
  const version: CommandResult = await run(
    withNetworkNamespace(networkNamespace, { program: 'nft', args: ['--version'] }),
  );
  return !isNotInstalled(version);
}

/** Continues after failures and returns them. */
async function removePresent(order: InterceptionOrder, presentState: PresentState): Promise<string[]> {
  const { networkNamespace, interception } = order;
  const steps = [
    ...ipFamilies.map((family) => () => removeRules(order, family, presentState.families[family])),
    () => removeNftTables(presentState.nftTables, networkNamespace),
    () => removeRoutes(presentState.marks, interception.tproxyRouteTable, networkNamespace),
  ];
  const errors: string[] = [];
  for (const step of steps) await step().catch((error: Error) => errors.push(error.message));
  return errors;
}

/** @throws ChartpilotError IPTABLES_FAILED with the first failure, after both families */
export async function removeAllRules(target: RemovalTarget): Promise<void> {
  const { families } = await presentIn(target);
  const results = await Promise.allSettled(ipFamilies.map((family) => removeRules(target, family, families[family])));
  for (const result of results) if (result.status === 'rejected') throw result.reason;
}

async function removeRules(
  { networkNamespace }: RemovalTarget,
  family: IpFamily,
  presentRules: PresentRedirection,
): Promise<void> {
  const text = removalText(presentRules);
  if (text === '') return;
  const program = `${programOf(family)}-restore`;
  await runOrThrow(withNetworkNamespace(networkNamespace, { program, args: ['--noflush'] }), { input: text });
}

async function removalPlan(order: InterceptionOrder): Promise<string> {
  const { families, nftTables } = await presentIn(order);
  return [
    ...ipFamilies.flatMap((family) => {
      const text = removalText(families[family]);
      return text === '' ? [] : [`# ${programOf(family)}-restore --noflush\n`, text];
    }),
    ...nftTables.map((table) => `nft delete table ${table}\n`),
  ].join('');
}

function descriptionOf({ families, nftTables }: PresentState): string[] {
  return [
    ...ipFamilies.flatMap((family) => {
      const { chains, rules, references } = families[family];
      const program = programOf(family);
      return [
        ...[...rules, ...references].map(({ table, chain, text }) => `${program} -t ${table} -A ${chain} ${text}`),
        ...chains.map(({ table, chain }) => `${program} -t ${table} -N ${chain}`),
      ];
    }),
    ...nftTables.map((table) => `nft table ${table}`),
  ];
}
