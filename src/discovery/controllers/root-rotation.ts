import { rootsIn } from '../../../machines/discovery/ca/authority.setup.ts';
import {
  nextStep,
  orderRejection,
  type RotationStep,
  type SharedJournal,
  startRotation,
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
  readonly authority: Pick<SharedAuthority, 'read' | 'subscribeDue' | 'generateRoot'>;
  readonly namespace: string;
  readonly name: string;
  readonly gracePercent: number;
  readonly maxLeafMs: number;
  readonly now: () => Date;
}

interface DueWrite {
  readonly step: RotationStep | undefined;
  readonly completesOrder: boolean;
  readonly materials: ReadonlyMap<string, AuthorityMaterial>;
  readonly read: ReadAuthority;
}

const emptyReport: DutyReport = { writtenCount: 0, failedCount: 0, reason: '' };

export class RootRotation implements Duty {
  readonly lease = 'chartpilot-root-rotation';
  readonly #options: RootRotationOptions;

  /** Base version of the last write. The next write needs a newer one. */
  #processedAuthority: ReadAuthority | undefined;

  constructor(options: RootRotationOptions) {
    this.#options = options;
  }

  watch(onDue: () => void): () => void {
    return this.#options.authority.subscribeDue(() => {
      if (this.isDue) onDue();
    });
  }

  get isDue(): boolean {
    const dueStep = this.#findDueStep();
    return dueStep !== undefined && dueStep.read !== this.#processedAuthority;
  }

  async writeDue(run: DutyRun, writeGate: WriteGate): Promise<DutyReport> {
    const dueStep = this.#findDueStep();
    const isAlreadyAttempted = dueStep?.read === this.#processedAuthority && !run.retry && !run.includesAll;
    if (dueStep === undefined || isAlreadyAttempted) return emptyReport;
    this.#processedAuthority = dueStep.read;
    try {
      await this.#write(dueStep, writeGate);
      return { ...emptyReport, writtenCount: 1 };
    } catch (error) {
      return { writtenCount: 0, failedCount: 1, reason: explainInOneLine(error) };
    }
  }

  /** The step is derived from the newest version, because the API server rejects writes based on an older one. */
  #findDueStep(): DueWrite | undefined {
    const authorityReadings = this.#options.authority.read;
    if (authorityReadings === undefined || authorityReadings.last.isPluggedIn || authorityReadings.current.isPluggedIn)
      return undefined;
    const { last, current } = authorityReadings;
    const currentDate = this.#options.now();
    if (last !== current) {
      const unknownAuthority = last.materials.get(last.journal.signer)!;
      const signerMaterial = current.materials.get(current.journal.signer)!;
      const journal = startRotation(unknownAuthority.id, current.journal, currentDate.getTime());
      const isJournalUnchanged = journal === current.journal;
      const materials = isJournalUnchanged
        ? current.materials
        : new Map([signerMaterial, unknownAuthority].map((material) => [material.id, material]));
      return { step: { journal, createsRoot: false }, completesOrder: false, materials, read: last };
    }
    const step = nextStep(last.journal, this.#factsOf(last, currentDate));
    // Each replica logs the reason when it reads the order.
    const isRejected = last.order !== null && orderRejection(last.order, last.journal) !== undefined;
    if (step === undefined && !isRejected) return undefined;
    return { step, completesOrder: true, materials: last.materials, read: last };
  }

  #factsOf({ journal, materials, order }: ReadAuthority, now: Date) {
    const { gracePercent, maxLeafMs } = this.#options;
    const { root, notAfter } = materials.get(journal.signer)!;
    const lifetimeMs = root.notAfter.getTime() - root.notBefore.getTime();
    return {
      ...{ now: now.getTime(), order, maxLeafMs },
      isRootDue: root.notAfter.getTime() - now.getTime() < (lifetimeMs * gracePercent) / 100,
      endsAt: notAfter.getTime(),
      otherEndsAt: journal.other === null ? null : (materials.get(journal.other)?.notAfter.getTime() ?? null),
    };
  }

  async #write({ step, completesOrder, materials, read }: DueWrite, writeGate: WriteGate): Promise<void> {
    const { namespace, name } = this.#options;
    const annotations: Record<string, string | null> = completesOrder ? { [orderAnnotation]: null } : {};
    const writtenStep = step && (await this.#writeStep(step, materials));
    if (writtenStep !== undefined) annotations[rotationAnnotation] = annotationOf(writtenStep.journal);
    await writeGate.write({
      ...{ verb: 'patch', resource: resourceOf('Secret'), namespace, name, version: read.version },
      fields: { metadata: { annotations }, ...(writtenStep && { data: nullForAbsent(writtenStep.data) }) },
    });
  }

  async #writeStep(
    { journal, createsRoot }: RotationStep,
    materialsByName: ReadonlyMap<string, AuthorityMaterial>,
  ): Promise<{ journal: SharedJournal; data: Record<string, string | undefined> }> {
    const materials = new Map(materialsByName);
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

/** Null removes a key in a merge patch. */
function nullForAbsent(data: Readonly<Record<string, string | undefined>>): Record<string, string | null> {
  return Object.fromEntries(Object.entries(data).map(([key, value]) => [key, value ?? null]));
}
