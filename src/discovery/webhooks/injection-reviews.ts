import * as E from 'fp-ts/lib/Either.js';
import { type ReviewedInjection, reviewInjection } from '../../injection/admission-review.ts';
import type { SidecarInjector } from '../../injection/injector.ts';
import type { Texts } from '../../injection/pod/pod.ts';
import { type AdmissionReview, noRequest, readReview, unavailableReview } from '../../injection/review-envelope.ts';
import { withGoTemplates } from '../../injection/template/go-template.ts';
import type { Logger } from '../../runtime/output/log.ts';
import { RepeatedLines } from '../xds/stream/repeated-lines.ts';

export interface InjectionReviewsOptions {
  /** Without settings, returns the reason. */
  readonly injector: () => E.Either<string, SidecarInjector>;
  readonly log: Logger;
  /** Unix time in milliseconds. */
  readonly now: () => number;
}

/** `unavailable` means that there are no settings. */
export type InjectionOutcome = ReviewedInjection['outcome'] | 'unavailable';

export class InjectionReviews {
  readonly counts = new Map<InjectionOutcome, number>();
  readonly #options: InjectionReviewsOptions;
  readonly #repeatedLines: RepeatedLines;

  constructor(options: InjectionReviewsOptions) {
    this.#options = options;
    this.#repeatedLines = new RepeatedLines(options.log, options.now);
  }

  /** @param addedEnvironment variables for the proxy, from the path of the webhook */
  async review(body: unknown, addedEnvironment: Texts): Promise<AdmissionReview> {
    const injector = this.#options.injector();
    if (E.isLeft(injector)) {
      this.#count('unavailable');
      this.#repeatedLines.warn('unavailable', 'injection.unavailable', { reason: injector.left });
      return unavailableReview(readReview(body) ?? noRequest, `sidecar injection is unavailable: ${injector.left}`);
    }
    const { review, outcome, pod, reason } = await withGoTemplates(injector.right, (readyInjector) =>
      reviewInjection(body, readyInjector, addedEnvironment),
    );
    this.#count(outcome);
    if (outcome === 'rejected') this.#repeatedLines.warn(`rejected ${pod}`, 'injection.rejected', { pod, reason });
    else if (outcome === 'skipped') this.#options.log.debug('injection.skipped', { pod, reason });
    else this.#options.log.debug('injection.injected', { pod, reason });
    return review;
  }

  #count(injectionOutcome: InjectionOutcome): void {
    this.counts.set(injectionOutcome, (this.counts.get(injectionOutcome) ?? 0) + 1);
  }
}
