// Creates a gate that a test opens.

export interface Gate {
  opened: Promise<void>;
  open: () => void;
}

/** Returns a promise and the function that resolves it. */
export function gate(): Gate {
  let open: () => void = () => undefined;
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { opened, open };
}
