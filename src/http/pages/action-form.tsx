import type { Action } from '../../operate/decisions/decision-types.ts';

export interface ActionFormProps {
  readonly action: Action;
  /** A run's number, a sink's name, or the kind of run to start. */
  readonly target: string | number;
  /** A `seq`. */
  readonly argument?: number;
  readonly label: string;
  /** Says what will happen. The button is then behind a first step, so that it is not pressed by accident. */
  readonly explanation?: string;
}

/** A button that posts a decision. It works without JavaScript; the browser returns to the page it came from. */
export function ActionForm({ action, target, argument, label, explanation }: ActionFormProps) {
  const form = (
    <form method="post" action="/actions" class="action">
      {explanation !== undefined && <p>{explanation}</p>}
      <input type="hidden" name="action" value={action} />
      <input type="hidden" name="target" value={target} />
      {argument !== undefined && <input type="hidden" name="argument" value={argument} />}
      <button type="submit">{label}</button>
    </form>
  );
  if (explanation === undefined) return form;
  // The id keeps an update from turning an opened decision into another one.
  return (
    <details class="action" id={['decide', action, target, argument ?? ''].join('-')}>
      <summary>{`${label}…`}</summary>
      {form}
    </details>
  );
}
