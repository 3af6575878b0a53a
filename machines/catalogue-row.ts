/** Which actor may send what to which other, which diagram shows it, and which messages of the seeds it stands for. */
export interface CatalogueRow<Diagram extends string = string> {
  readonly type: string;
  /** An actor's name; `N` stands for its number. */
  readonly from: string;
  readonly to: string;
  /** A file of sequences/, without its extension. */
  readonly diagram: Diagram;
  /** Rows of the tables of the specification: `6.8 #11`, `12.1 #14a`. Empty for what the seeds do not draw. */
  readonly seeds: readonly string[];
}
