//! The registration of workloads. A workload is one file, which implements
//! [`Registered`](crate::registered::Registered), and one line in the list at the end of `lib.rs`.

pub use crate::AnyWorkload;
use crate::session::Workload;

/// An operation on a workload of any type.
pub trait Visitor {
    /// Its result.
    type Output;

    /// Performs it.
    fn visit<W: Workload>(self, workload: &W) -> Self::Output;
}

macro_rules! register {
    ($($name:ident: $workload:ty,)+) => {
        mod any_workload {
            use mydyno_model::record::OperationInfo;
            use mydyno_tables::work_tables::WorkTables;

            use crate::fingerprint;
            use crate::options::OptionError;
            use crate::registered::{Registered, Request, Spec};
            use crate::registry::Visitor;
            use crate::session::Workload;
            use crate::user_statement::UserStatement;

            /// A workload of any registered type.
            #[derive(Debug, Clone)]
            pub enum AnyWorkload {
                $(#[doc = stringify!($workload)] $name(Box<$workload>),)+
            }

            /// Entries of all workloads, a list for each type.
            pub(crate) const SPECS: &[&[Spec]] = &[$(<$workload as Registered>::SPECS,)+];

            impl AnyWorkload {
                /// Builds the requested workload, and describes its tables.
                ///
                /// # Errors
                /// All inconsistent options; an unknown name.
                pub fn build(request: &Request<'_>) -> Result<(Self, WorkTables), Vec<OptionError>> {
                    $(if <$workload as Registered>::SPECS.iter().any(|spec| spec.name == request.name) {
                        let (workload, tables) = <$workload as Registered>::build(request)?;
                        return Ok((Self::$name(Box::new(workload)), tables));
                    })+
                    Err(vec![OptionError::Impossible(format!("there is no workload {:?}", request.name))])
                }

                /// Performs an operation on the workload as it is in step `step` of a run (from 0).
                pub fn visit<V: Visitor>(&self, step: u64, visitor: V) -> V::Output {
                    match self {
                        $(Self::$name(workload) => match workload.at_step(step) {
                            Some(workload) => visitor.visit(&workload),
                            None => visitor.visit(&**workload),
                        },)+
                    }
                }

                /// As [`Workload::operations`].
                pub fn operations(&self) -> &[OperationInfo] {
                    match self { $(Self::$name(workload) => workload.operations(),)+ }
                }

                /// Number of statements that each connection prepares.
                pub fn statements(&self) -> usize {
                    match self { $(Self::$name(workload) => workload.statements().len(),)+ }
                }

                /// As [`Workload::writes`].
                pub fn writes(&self) -> bool {
                    match self { $(Self::$name(workload) => workload.writes(),)+ }
                }

                /// As [`Workload::keeps_row_count`].
                pub fn keeps_row_count(&self) -> bool {
                    match self { $(Self::$name(workload) => workload.keeps_row_count(),)+ }
                }

                /// As [`Workload::before_step`].
                pub fn before_step(&self) -> Vec<String> {
                    match self { $(Self::$name(workload) => workload.before_step(),)+ }
                }

                /// As [`Workload::longest_query_bytes`].
                pub fn longest_query_bytes(&self) -> usize {
                    match self { $(Self::$name(workload) => workload.longest_query_bytes(),)+ }
                }

                /// As [`Registered::think_s`].
                pub fn think_s(&self) -> f64 {
                    match self { $(Self::$name(workload) => workload.think_s(),)+ }
                }

                /// As [`Registered::connections`].
                pub fn connections(&self) -> Option<usize> {
                    match self { $(Self::$name(workload) => workload.connections(),)+ }
                }

                /// As [`Registered::work`].
                pub fn work(&self) -> Vec<(&'static str, String)> {
                    match self { $(Self::$name(workload) => workload.work(),)+ }
                }

                /// As [`Registered::user_statements`].
                pub fn user_statements(&self) -> &[UserStatement] {
                    match self { $(Self::$name(workload) => workload.user_statements(),)+ }
                }

                /// Fingerprint of its operations, and of the user's file if there is one.
                pub fn fingerprint(&self) -> String {
                    match self {
                        $(Self::$name(workload) => {
                            let operations = fingerprint::operations(&**workload);
                            workload.content().map_or(operations.clone(), |file| format!("{operations}-{file}"))
                        })+
                    }
                }
            }
        }

        pub use any_workload::AnyWorkload;
        pub(crate) use any_workload::SPECS;
    };
}

pub(crate) use register;
