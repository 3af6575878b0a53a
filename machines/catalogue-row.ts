/**
 * An event: sender, receiver, the diagram that shows it, and the messages of the specification that it corresponds to.
 */
export interface CatalogueRow<Diagram extends string = string> {
  readonly type: string;
  /** Name of an actor; `N` stands for its number. */
  readonly from: string;
  readonly to: string;
  /** A file in sequences/, without its extension. */
  readonly diagram: Diagram;
  /**
   * Rows of the tables of the specification: `6.8 #11`, `12.1 #14a`. Empty if the specification does not have the
   * message.
   */
  readonly seeds: readonly string[];
}
