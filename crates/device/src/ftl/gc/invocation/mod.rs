//! The invocation axis: when garbage collection runs.
//!
//! One file per policy. To add one: write the file, add its line to the list.

flashkeel_config::axis! {
    /// When garbage collection runs.
    pub enum InvocationConfig as "invocation": Invocation {
        /// As a task beside the host's, from the start to the stop threshold.
        Task(Task) in task = "task",
        /// Like `task`, but while `force_below` blocks are free beginning with a block only when
        /// its channel has no work of the host, or under `dynamic` allocation none has. Queued
        /// moves of a block that has begun go on.
        Deferred(Deferred) in deferred = "deferred",
        /// Like `task`, but keeping as many blocks free as the host is expected to need.
        Ahead(Ahead) in ahead = "ahead",
        /// In the foreground of a flush, which waits until it has finished.
        Foreground(Foreground) in foreground = "foreground",
    }
}

impl Default for InvocationConfig {
    fn default() -> Self {
        InvocationConfig::Task(task::Task::default())
    }
}

/// An invocation policy.
pub trait Invocation {
    /// Whether garbage collection may start as soon as free blocks are short;
    /// otherwise it starts when a flush needs a page while they are.
    fn starts_by_itself(&self) -> bool;

    /// Whether host programs wait until garbage collection has reached its
    /// stop threshold.
    fn holds_host(&self) -> bool;

    /// Whether garbage collection begins with a block only while the channel
    /// has no work of the host, as long as enough blocks are free.
    fn defers(&self) -> bool {
        false
    }

    /// Whether the thresholds go by what the host is expected to write.
    fn looks_ahead(&self) -> bool {
        false
    }

    /// Checks the settings.
    ///
    /// # Errors
    /// A sentence that begins with the key.
    fn validate(&self) -> Result<(), String> {
        Ok(())
    }
}
