/**
 * Duty that rotates the root shared by replicas. Pure rules determine the next stage, the leader writes it, and all replicas apply the stage that
 * they read.
 */
import { rootsIn } from '../../../machines/discovery/ca/authority.setup.ts';
import {
  nextStep,
  orderRejection,
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
  readonly authority: Pick<SharedAuthority, 'read' | 'watchDue' | 'generateRoot'>;
  readonly namespace: string;
  readonly name: string;
  readonly gracePercent: number;
  readonly maxLeafMs: number;
  readonly now: () => Date;
}

/** A write that is due: a new stage, or the removal of a completed order. */
interface Due {
  readonly step: RotationStep | undefined;
  /** Whether the write removes the order. */
  readonly completesOrder: boolean;
  readonly materials: ReadonlyMap<string, AuthorityMaterial>;
  readonly read: ReadAuthority;
}

const nothingDue: DutyReport = { written: 0, failed: 0, reason: '' };

export class RootRotation implements Duty {
  readonly lease = 'chartpilot-root-rotation';
  readonly #options: RootRotationOptions;

  /** Base version of the last write, successful or not. The next write needs a newer one. */
  #processed: ReadAuthority | undefined;

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
    return due !== undefined && due.read !== this.#processed;
  }

  async writeDue(run: DutyRun, gate: WriteGate): Promise<DutyReport> {
    const due = this.#due();
    const isTried = due?.read === this.#processed && !run.retry && !run.anew;
    if (due === undefined || isTried) return nothingDue;
    this.#processed = due.read;
    try {
      await this.#write(due, gate);
      return { ...nothingDue, written: 1 };
    } catch (error) {
      return { written: 0, failed: 1, reason: explainInOneLine(error) };
    }
  }

  /** Derived from the newest version, because the API server rejects writes based on an older one. */
  #due(): Due | undefined {
    const read = this.#options.authority.read;
    if (read === undefined || read.last.isPluggedIn || read.current.isPluggedIn) return undefined;
    const { last, current } = read;
    const now = this.#options.now();
    if (last !== current) {
      const unknownAuthority = last.materials.get(last.journal.signer)!;
      const knownJournal = current.materials.get(current.journal.signer)!;
      const journal = rotationTo(unknownAuthority.id, current.journal, now.getTime());
      const isPutBack = journal === current.journal;
      const materials = isPutBack
        ? current.materials
        : new Map([knownJournal, unknownAuthority].map((material) => [material.id, material]));
      return { step: { journal, createsRoot: false }, completesOrder: false, materials, read: last };
    }
    const step = nextStep(last.journal, this.#factsOf(last, now));
    // Each replica logs the reason when it reads the order.
    const isRejected = last.order !== null && orderRejection(last.order, last.journal) !== undefined;
    if (step === undefined && !isRejected) return undefined;
    return { step, completesOrder: true, materials: last.materials, read: last };
  }

  #factsOf({ journal, materials, order }: ReadAuthority, now: Date) {
    const { gracePercent, maxLeafMs } = this.#options;
    const { root, notAfter } = materials.get(journal.signer)!;
    const life = root.notAfter.getTime() - root.notBefore.getTime();
    return {
      ...{ now: now.getTime(), order, maxLeafMs },
      isRootDue: root.notAfter.getTime() - now.getTime() < (life * gracePercent) / 100,
      endsAt: notAfter.getTime(),
      otherEndsAt: journal.other === null ? null : (materials.get(journal.other)?.notAfter.getTime() ?? null),
    };
  }

  async #write({ step, completesOrder, materials, read }: Due, gate: WriteGate): Promise<void> {
    const { namespace, name } = this.#options;
    const annotations: Record<string, string | null> = completesOrder ? { [orderAnnotation]: null } : {};
    const written = step && (await this.#written(step, materials));
    if (written !== undefined) annotations[rotationAnnotation] = annotationOf(written.journal);
    await gate.write({
      ...{ verb: 'patch', resource: resourceOf('Secret'), namespace, name, version: read.version },
      fields: { metadata: { annotations }, ...(written && { data: withoutAbsent(written.data) }) },
    });
  }

  async #written(
    { journal, createsRoot }: RotationStep,
    knownMaterials: ReadonlyMap<string, AuthorityMaterial>,
  ): Promise<{ journal: SharedJournal; data: Record<string, string | undefined> }> {
    const materials = new Map(knownMaterials);
    let nextJournal = journal;
    if (createsRoot) {
      const next = await this.#options.authority.generateRoot();
      materials.set(next.id, next);
      nextJournal = { ...journal, other: next.id };
    }
    const roots = rootsIn(nextJournal.stage, nextJournal).map((id) => materials.get(id)!.root);
    return { journal: nextJournal, data: dataOf(nextJournal, materials, roots) };
  }
}

/** Replaces `undefined` by null, which removes a key in a merge patch. */
function withoutAbsent(data: Readonly<Record<string, string | undefined>>): Record<string, string | null> {
  return Object.fromEntries(Object.entries(data).map(([key, value]) => [key, value ?? null]));
}
