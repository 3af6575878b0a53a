/** The rotation of the root that replicas share, as the replica that leads writes it: the rules say which stage is next, and all follow what they read. */
import { rootsIn } from '../../../machines/discovery/ca/authority.setup.ts';
import {
  nextStep,
  type RotationStep,
  rotationTo,
  type SharedJournal,
} from '../../../machines/discovery/ca/shared-rotation.ts';
import { explainInOneLine } from '../../runtime/errors.ts';
import type { AuthorityMaterial } from '../ca/authority-material.ts';
import type { SharedAuthority } from '../ca/shared-authority.effects.ts';
import {
  annotationOf,
  dataOf,
  orderAnnotation,
  type ReadAuthority,
  rotationAnnotation,
} from '../ca/shared-root/authority-secret.ts';
import type { Duty, DutyReport, DutyRun } from '../election/duty.ts';
import type { WriteGate } from '../election/write-gate.ts';
import { resourceOf } from '../kubernetes/api-resource.ts';

export interface RootRotationOptions {
  readonly authority: Pick<SharedAuthority, 'read' | 'watchDue' | 'makeRoot'>;
  readonly namespace: string;
  /** Name of the Secret. */
  readonly name: string;
  /** Hundredths of a root's life that are left when the next root is begun. */
  readonly gracePercent: number;
  /** What this replica may sign at most. */
  readonly longestLeafMs: number;
  readonly now: () => Date;
}

/** What is to be written: a stage, or only that an order was dealt with. */
interface Due {
  readonly step: RotationStep | undefined;
  readonly materials: ReadonlyMap<string, AuthorityMaterial>;
  /** What it was made from. */
  readonly read: ReadAuthority;
}

const nothing: DutyReport = { written: 0, failed: 0, reason: '' };

export class RootRotation implements Duty {
  readonly lease = 'chartpilot-root-rotation';
  readonly #options: RootRotationOptions;

  /** What was dealt with, well or in vain: another one is to be read before there is more to do about it. */
  #done: ReadAuthority | undefined;

  constructor(options: RootRotationOptions) {
    this.#options = options;
  }

  watch(due: () => void): () => void {
    return this.#options.authority.watchDue(() => {
      if (this.isDue) due();
    });
  }

  get isDue(): boolean {
    const due = this.#due();
    return due !== undefined && due.read !== this.#done;
  }

  async writeDue(run: DutyRun, gate: WriteGate): Promise<DutyReport> {
    const due = this.#due();
    const isTried = due?.read === this.#done && !run.retry && !run.anew;
    if (due === undefined || isTried) return nothing;
    this.#done = due.read;
    try {
      await this.#write(due, gate);
      return { ...nothing, written: 1 };
    } catch (error) {
      return { written: 0, failed: 1, reason: explainInOneLine(error) };
    }
  }

  /** What is due, by the newest version that was read: the API server refuses what is made from an older one. */
  #due(): Due | undefined {
    const read = this.#options.authority.read;
    if (read === undefined || read.last.isPluggedIn || read.inForce.isPluggedIn) return undefined;
    const { last, inForce } = read;
    const now = this.#options.now();
    if (last !== inForce) {
      const stranger = last.materials.get(last.journal.signer)!;
      const ours = inForce.materials.get(inForce.journal.signer)!;
      const journal = rotationTo(stranger.id, inForce.journal, now.getTime());
      const isPutBack = journal === inForce.journal;
      const materials = isPutBack ? inForce.materials : new Map([ours, stranger].map((one) => [one.id, one]));
      return { step: { journal, makesRoot: false }, materials, read: last };
    }
    const step = nextStep(last.journal, this.#factsOf(last, now));
    // An order that there is nothing to do about goes; a stage that has just begun may be gone on from in a minute.
    const isVain = last.order !== null && !(last.order === 'proceed' && last.journal.stage !== 'steady');
    if (step === undefined && !isVain) return undefined;
    return { step, materials: last.materials, read: last };
  }

  #factsOf({ journal, materials, order }: ReadAuthority, now: Date) {
    const { gracePercent, longestLeafMs } = this.#options;
    const { root, notAfter } = materials.get(journal.signer)!;
    const life = root.notAfter.getTime() - root.notBefore.getTime();
    return {
      ...{ now: now.getTime(), order, longestLeafMs },
      isRootDue: root.notAfter.getTime() - now.getTime() < (life * gracePercent) / 100,
      endsAt: notAfter.getTime(),
      otherEndsAt: journal.other === null ? null : (materials.get(journal.other)?.notAfter.getTime() ?? null),
    };
  }

  async #write({ step, materials, read }: Due, gate: WriteGate): Promise<void> {
    const { namespace, name } = this.#options;
    const annotations: Record<string, string | null> = { [orderAnnotation]: null };
    const written = step && (await this.#written(step, materials));
    if (written !== undefined) annotations[rotationAnnotation] = annotationOf(written.journal);
    await gate.write({
      ...{ verb: 'patch', resource: resourceOf('Secret'), namespace, name, version: read.version },
      fields: { metadata: { annotations }, ...(written && { data: withoutAbsent(written.data) }) },
    });
  }

  async #written(
    { journal, makesRoot }: RotationStep,
    known: ReadonlyMap<string, AuthorityMaterial>,
  ): Promise<{ journal: SharedJournal; data: Record<string, string | undefined> }> {
    const materials = new Map(known);
    let made = journal;
    if (makesRoot) {
      const next = await this.#options.authority.makeRoot();
      materials.set(next.id, next);
      made = { ...journal, other: next.id };
    }
    const roots = rootsIn(made.stage, made).map((id) => materials.get(id)!.root);
    return { journal: made, data: dataOf(made, materials, roots) };
  }
}

/** The data with null for keys that are to go, as a merge patch says it. */
function withoutAbsent(data: Readonly<Record<string, string | undefined>>): Record<string, string | null> {
  return Object.fromEntries(Object.entries(data).map(([key, value]) => [key, value ?? null]));
}
